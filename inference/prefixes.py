"""What an embedding model wants to read before a query and before a passage, by the model's name."""

_BY_NAME = (
    ("e5", "query: ", "passage: "),
    ("nomic", "search_query: ", "search_document: "),
    (
        "qwen3-embedding",
        "Instruct: Given a question, retrieve passages that answer it\nQuery: ",
        "",
    ),
    ("embeddinggemma", "task: search result | query: ", "title: none | text: "),
    ("snowflake-arctic-embed", "query: ", ""),
    ("mxbai", "Represent this sentence for searching relevant passages: ", ""),
)


def prefixes_of(name: str) -> tuple[str, str]:
    """Prefix of a query and of a passage; both empty for a model that wants none (bge-m3, minilm) or is not known."""
    lowered = name.lower()
    return next(((query, passage) for part, query, passage in _BY_NAME if part in lowered), ("", ""))
