"""`policy`: what may leave, the proof that nothing else does, and whether such a proof is whole."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from api import runtime
from api.cli import console
from api.cli.commands import Json, command
from core.errors import InvalidRequest
from core.settings import Settings
from policy import boot, egress, hook, ledger, proof, signing
from policy.attempts import Outcome

app = typer.Typer(help="Show the egress policy, prove that it holds, verify such a proof.", no_args_is_help=True)

CLOUD: Final = ("gpt:cloud", "gpt-cloud:120b", "Gpt:120B-CLOUD ", "gpt:ｃｌｏｕｄ")
RESULTS: Final = {
    "refused": "refused",
    "passed": "GOT OUT",
    "open": "not stopped by the program, and no wall of the system does",
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
    """Show every rule in force, and how often this process has denied something, by reason."""
    policy = runtime.arm(settings)
    rows = list(_rules(policy))
    denials = dict(sorted(ledger.denials().items()))
    if as_json:
        rules = [dict(zip(("layer", "rule", "value", "reason"), row, strict=True)) for row in rows]
        console.print_json({"digest": proof.digest(policy), "rules": rules, "denials": denials})
        return
    console.table(("Layer", "Rule", "In force", "Reason of a denial"), rows)
    console.table(("Denied for", "Times"), list(denials.items()), right=("Times",))
    console.note(f"policy {proof.digest(policy)}; docs/reference/policy.md explains every reason")


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
        console.note(f"signed with the key {report['signature']['key']}; `--json` gives the report to keep")
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


def _read(file: Path) -> dict[str, Any]:
    try:
        read = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidRequest(f"{file} cannot be read as a report") from error
    if not isinstance(read, dict):
        raise InvalidRequest(f"{file} cannot be read as a report")
    return read


def _rules(policy: egress.Policy) -> Iterator[tuple[str, str, str, str]]:
    """(layer, rule, what is in force, reason code of a denial) of everything that may refuse."""
    yield "judge", "scope", str(policy.scope), "scope"
    yield "judge", "loopback ports", _joined(map(str, sorted(policy.ports))), "port_not_listed"
    yield "judge", "private peers", _joined(f"{host}:{port}" for host, port in sorted(policy.peers)), "peer_not_listed"
    yield "judge", "names that may be looked up", _joined(sorted(policy.names)), "name_not_listed"
    yield "judge", "public addresses", "none, ever", "public"
    yield "judge", "URLs", "one canonical spelling", "malformed_url, not_canonical"
    yield "transport", "redirects", "none", "redirect"
    yield "transport", "a name's address", "judged at every request, then pinned", "mixed_answers"
    yield "tripwire", "connections, datagrams", "loopback and peers", "public, peer_not_listed"
    yield "tripwire", "look-ups", _joined(("localhost", *sorted(policy.names))), "name"
    listening = ("loopback", "{}:{}".format(*policy.listen)) if policy.listen else ("loopback",)
    yield "tripwire", "listening", _joined(listening), "bind"
    yield "tripwire", "Unix sockets", _joined(policy.sockets), "unix_socket"
    yield "tripwire", "programs, libraries", "those of the program itself", "program, library"
    yield "tripwire", "events watched", str(len(hook.EVENTS)), "unknown_shape"
    yield from (("boot", name, value, "-") for name, value in sorted(boot.SWITCHES.items()))
    yield "boot", "variables removed", _joined((*sorted(boot.REMOVED), *(f"{p}*" for p in boot.REMOVED_PREFIXES))), "-"
    yield "boot", "start refused with", _joined((*boot.PROXIES, *boot.BLIND_LOOPS)), "-"


def _joined(parts: Any) -> str:
    return ", ".join(parts) or "none"
