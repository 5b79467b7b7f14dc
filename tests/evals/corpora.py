"""The sets that retrieval is measured on; each a folder of documents, and questions with the document that answers.

- handbook: the sample handbook of the demo, both languages, with our questions;
- gsa: the handbook of the US GSA's Technology Transformation Services, English, with our questions;
- cmrc, drcd: passages of CMRC 2018 (Simplified) and DRCD (Traditional Chinese) with their questions (CC BY-SA);
- xquad-en, xquad-zh: the same passages and questions in both languages (XQuAD, CC BY-SA); xquad-en-zh, xquad-zh-en:
  asked in the first language, answered in the second;
- dify-en-zh, dify-zh-en: the documentation of Dify (CC BY 4.0): a page's title in one language finds that page in the
  other, where no second page has the title; dify-all-...: every title, one that pages share finds any of them;
- scifact: claims and the abstracts that speak of them (CC BY-NC), English.

Of many questions every n-th is asked; of a large set only a part is read: what answers those, and so many others.
"""

import json
import re
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from api import evaluation
from api.evaluation import Question
from tests.paths import EVALS, PROJECT, shared_data

T = TypeVar("T")

# Passages that are read of a set that has more.
PART = 500

_TITLE = re.compile(r"^title:\s*[\"']?(.+?)[\"']?\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Corpus:
    """A folder of documents, the questions asked about them, of how many, and what means the same there.

    `documents_of`: how many the set has, where only a part of it is read.
    """

    name: str
    folder: Path
    questions: Sequence[Question]
    asked_of: int
    synonyms: Sequence[Sequence[str]] = ()
    documents_of: int | None = None


# From a folder to write to, and how many questions are asked at most.
Make = Callable[[Path, int], Corpus | None]


def handbook(_work: Path, most: int) -> Corpus:
    """The sample handbook."""
    questions = evaluation.load(EVALS / "handbook_retrieval.jsonl")
    folder = PROJECT / "deploy" / "demo" / "handbook"
    return Corpus("handbook", folder, thinned(questions, most), len(questions), synonyms("office"))


def gsa(work: Path, most: int) -> Corpus | None:
    """The GSA handbook: its pages and the forms that they offer."""
    source = _source("handbook-gsa-tts")
    if source is None:
        return None
    folder = work / "gsa"
    for part in ("pages", "downloads"):
        shutil.copytree(source / part, folder / part)
    questions = evaluation.load(EVALS / "gsa_questions.jsonl")
    return Corpus("gsa", folder, thinned(questions, most), len(questions), synonyms("office"))


def passages(name: str, source: str, asked: str, answered: str, work: Path, most: int) -> Corpus | None:
    """A set of passages, each a Markdown file of its own with its title as heading; ids begin with the language's.

    `asked` and `answered` are the languages of questions and passages, empty where the set has one language.
    """
    folder = _source(f"retrieval-sets/{source}")
    if folder is None:
        return None
    relevant: dict[str, str] = {}
    relations = "qrels.cross.tsv" if asked != answered else "qrels.tsv"
    for line in (folder / relations).read_text(encoding="utf-8").splitlines()[1:]:
        query, passage, _ = line.split("\t")
        relevant.setdefault(query, passage)
    rows = (row for row in _rows(folder / "queries.jsonl") if row["_id"].startswith(asked))
    questions = [Question(row["text"], (f"{relevant[row['_id']]}.md",)) for row in rows]
    asked_about = thinned(questions, most)
    texts = {f"{row['_id']}.md": row for row in _rows(folder / "corpus.jsonl") if row["_id"].startswith(answered)}
    target = work / name
    target.mkdir()
    for path in _part(list(texts), asked_about):
        title = texts[path]["title"].replace("_", " ")
        (target / path).write_text(f"# {title}\n\n{texts[path]['text']}\n", encoding="utf-8")
    return Corpus(name, target, asked_about, len(questions), documents_of=len(texts))


def _part(paths: Sequence[str], asked: Sequence[Question]) -> Iterable[str]:
    """All of the documents, or those that answer these questions and of the others as many as make `PART`."""
    needed = {document for question in asked for document in question.documents}
    others = [path for path in paths if path not in needed]
    return paths if len(paths) <= PART else [*sorted(needed), *thinned(others, PART - len(needed))]


def dify(name: str, asked: str, answered: str, work: Path, most: int, *, shared: bool) -> Corpus | None:
    """The pages in one language, and their titles in the other; with those that pages share, where any is right."""
    source = _source("docs-dify-en-zh")
    if source is None:
        return None
    titles: dict[str, list[str]] = {}
    for path in sorted((source / answered).rglob("*.mdx")):
        place = path.relative_to(source / answered)
        target = work / name / place.with_suffix(".md")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
        title = _TITLE.search((source / asked / place).read_text(encoding="utf-8"))
        if title is not None:
            titles.setdefault(title[1], []).append(f"{name}/{place.with_suffix('.md').as_posix()}")
    questions = [Question(title, tuple(pages)) for title, pages in titles.items() if shared or len(pages) == 1]
    return Corpus(name, work / name, thinned(questions, most), len(questions), synonyms("software"))


def synonyms(domain: str) -> list[list[str]]:
    """What means the same where people speak of this."""
    rows = _rows(EVALS / "synonyms.jsonl")
    return [row["words"] for row in rows if row["domain"] == domain]


def thinned(values: Sequence[T], most: int) -> Sequence[T]:
    """Every n-th, so that no more than so many are left."""
    return values[:: max(1, -(-len(values) // most))]


CORPORA: dict[str, Make] = {
    "handbook": handbook,
    "gsa": gsa,
    "xquad-en": partial(passages, "xquad-en", "xquad-en-zh", "en", "en"),
    "xquad-zh": partial(passages, "xquad-zh", "xquad-en-zh", "zh", "zh"),
    "xquad-en-zh": partial(passages, "xquad-en-zh", "xquad-en-zh", "en", "zh"),
    "xquad-zh-en": partial(passages, "xquad-zh-en", "xquad-en-zh", "zh", "en"),
    "dify-en-zh": partial(dify, "dify-en-zh", "en", "zh", shared=False),
    "dify-zh-en": partial(dify, "dify-zh-en", "zh", "en", shared=False),
    "dify-all-en-zh": partial(dify, "dify-all-en-zh", "en", "zh", shared=True),
    "dify-all-zh-en": partial(dify, "dify-all-zh-en", "zh", "en", shared=True),
    "cmrc": partial(passages, "cmrc", "cmrc2018", "", ""),
    "drcd": partial(passages, "drcd", "drcd", "", ""),
    "scifact": partial(passages, "scifact", "scifact", "", ""),
}


def _source(name: str) -> Path | None:
    data = shared_data()
    folder = data / name if data else None
    return folder if folder is not None and folder.is_dir() else None


def _rows(path: Path) -> Iterable[dict[str, Any]]:
    return (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip())
