"""`policy`: what may leave, the proof that nothing else does, and whether such a proof is whole."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.text import Text

from api import runtime
from api.cli import console
from api.cli.commands import Json, command
from api.cli.rules import LAYERS, Rule, rules
from api.cli.wrapping import wrap
from core.errors import InvalidRequest
from core.settings import Settings
from policy import proof, signing
from policy.attempts import Outcome

app = typer.Typer(help="Show the egress policy, prove that it holds, verify such a proof.", no_args_is_help=True)

CLOUD: Final = ("gpt:cloud", "gpt-cloud:120b", "Gpt:120B-CLOUD ", "gpt:ｃｌｏｕｄ")
RESULTS: Final = {
    "refused": "refused",
    "passed": "GOT OUT",
    "open": "OPEN: only a wall of the system could refuse it",
    "absent": "not installed",
}
VERDICTS: Final = {
    "closed": "Nothing gets out: every attempt was refused",
    "open": "The program refused all that it can see. What it cannot see is open: put up a wall of the operating "
    "system (docs/deployment.md), then `intramuros doctor --walls`",
    "broken": "Something got past the program: do not use this installation, and report it (SECURITY.md)",
}
# Nothing left; something left past the program; only the operating system's wall is missing.
CODES: Final = {"closed": 0, "broken": 1, "open": 2}


def register(root: typer.Typer) -> None:
    command(app, "show")(show)
    command(app, "prove")(prove)
    command(app, "verify")(verify)
    root.add_typer(app, name="policy")


def show(settings: Settings, as_json: Json = False) -> None:
    """Explain every rule in force, with the reason codes that its denials carry."""
    policy = runtime.arm(settings)
    found = rules(policy)
    if as_json:
        console.print_json({"digest": proof.digest(policy), "rules": [asdict(rule) for rule in found]})
        return
    for layer, words in LAYERS.items():
        _show(layer, words, [rule for rule in found if rule.layer == layer])
    console.note(f"policy {proof.digest(policy)}; docs/reference/policy.md explains every reason")


def _show(layer: str, words: str, found: Sequence[Rule]) -> None:
    """A layer's rules: what is in force, below it what that means."""
    out = console.out()
    width = console.measure(out)
    out.print(Text.assemble((layer, "bold"), f": {words}"), soft_wrap=True)
    for rule in found:
        denied = f" Denied as {', '.join(rule.reasons)}." if rule.reasons else ""
        first, *more = wrap(f"{rule.name}: {console.one_line(rule.value)}", width - 2)
        name, _, value = first.partition(": ")
        out.print(Text.assemble("  ", (name, "bold"), ": ", value), soft_wrap=True)
        for line in more:
            out.print(Text(f"    {line}"), soft_wrap=True)
        for line in wrap(rule.meaning + denied, width - 4):
            out.print(Text(f"    {line}", style="dim"), soft_wrap=True)


def prove(settings: Settings, as_json: Json = False) -> None:
    """Try to get out in every known way, and print a signed table of the refusals.

    Exit code 1 when something got past the program, 2 when only a wall of the operating system is missing.
    """
    policy = runtime.arm(settings)
    with console.progress("Trying to get out"):
        outcomes = [*proof.attempts(policy), *cloud_models()]
    report = signing.sign(proof.report(policy, outcomes), signing.key(settings.home))
    if as_json:
        console.print_json(report)
    else:
        columns = ("Attempt", "Result", "By", "Reason")
        console.table(columns, [(o.name, RESULTS[o.result], o.layer, o.reason) for o in outcomes])
        console.say(f"{report['verdict']}: {VERDICTS[report['verdict']]}")
        console.say(
            f"{len(outcomes)} attempts: {_counted(report['counts'])}; {report['made_at']}, version {report['version']}"
        )
        console.say(f"key {report['signature']['key']}")
        console.say(f"signature {report['signature']['value']}")
        console.note("`--json` gives the report to keep, which `intramuros policy verify` checks")
    if CODES[report["verdict"]]:
        raise typer.Exit(CODES[report["verdict"]])


def verify(
    settings: Settings,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A report that `policy prove --json` wrote.")],
    key: Annotated[str, typer.Option("--key", help="The public key that must have signed; empty: this home's.")] = "",
) -> None:
    """Check that a report was signed by the expected key and has not been changed since."""
    signer = signing.verified(_read(file))
    if signer is None:
        raise InvalidRequest(f"{file} is not whole: its signature does not fit what it says")
    if signer != (key or signing.public(signing.key(settings.home))):
        raise InvalidRequest(f"{file} was signed by another key: {signer}. Name that key with --key if you trust it")
    report = _read(file)
    console.say(f"{file}: unchanged, {report['verdict']}, made {report['made_at']} by version {report['version']}")


def cloud_models() -> list[Outcome]:
    """Names of models that run on the vendor's computers: each must be known as such."""
    from inference.ollama import is_cloud

    missed = [name for name in CLOUD if not is_cloud(name)]
    name = f"{len(CLOUD)} spellings of a cloud model"
    return [Outcome(name, "passed" if missed else "refused", "models", missed[0] if missed else "cloud_model")]


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {RESULTS[result].partition(':')[0]}" for result, number in counts.items())


def _read(file: Path) -> dict[str, Any]:
    try:
        read = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidRequest(f"{file} cannot be read as a report") from error
    if not isinstance(read, dict):
        raise InvalidRequest(f"{file} cannot be read as a report")
    return read
