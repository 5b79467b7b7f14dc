"""What leads out of a text: addresses, pictures, HTML. An answer has none; our own links are made where it is shown.

A model may be made to write an address that carries what it read (`![](https://host/?q=...)`): a page that shows it
would send that away. Nothing of an address stays, not even as plain text that a mail program would make a link of.
"""

import re
from typing import Final

# Any scheme, and what browsers and mail programs take for an address without one.
_SCHEME: Final = r"(?:[a-z][a-z0-9+.-]{1,20}:\s*[/\\]{1,3}|(?:data|javascript|vbscript|mailto|tel|file|ftp|sms):)"
_OF_ADDRESS: Final = r"[^\s<>\"'`，。；、！？（）()\[\]{}|"
# All up to the punctuation that closes a sentence.
_REST: Final = rf"(?:{_OF_ADDRESS}]*{_OF_ADDRESS}.,;:!?])?"
_TOP_LEVEL: Final = "com|net|org|io|ai|cn|de|uk|eu|ru|info|biz|dev|app|xyz|top|site|online|co|me|tv|cc|example|test"
_PICTURE: Final = re.compile(r"!\s*\[[^\]\n]*\]\s*(?:\([^)\n]*\)?|\[[^\]\n]*\]|:[^\n]*)?")
_LINK: Final = re.compile(r"\[([^\]\n]*)\]\s*\([^)\n]*\)?")
_REFERENCE: Final = re.compile(r"^\s{0,3}\[[^\]\n]+\]:[^\n]*$|\[([^\]\n]+)\]\[[^\]\n]*\]", re.MULTILINE)
_TAG: Final = re.compile(r"<(?:/?[a-z!?][^>\n]*|[^>\n]*@[^>\n]*)(?:>|\Z)", re.IGNORECASE)
# Letters and brackets written so that they become HTML or an address only where they are shown.
_ENTITY: Final = re.compile(r"&(?:amp;)*(?:lt|gt|colon|sol|bsol|#x?[0-9a-f]{1,8})\b;?", re.IGNORECASE)
_ADDRESS: Final = re.compile(
    rf"{_SCHEME}{_REST}|(?<![\w/\\])[/\\]{{2}}\w{_REST}|\bwww\.{_REST}"
    rf"|(?<![\w.@-])(?:[a-z0-9-]+\.)+(?:{_TOP_LEVEL})\b[/:?#]{_REST}|(?<![\w.@-])\d{{1,3}}(?:\.\d{{1,3}}){{3}}[/:?#]{_REST}",
    re.IGNORECASE,
)


def without_links(text: str) -> str:
    """The text without addresses, pictures and HTML; what a link says stays. Taken out until there is none: what stood
    around one may be another."""
    before = ""
    while text != before:
        before = text
        for pattern, kept in ((_PICTURE, ""), (_LINK, r"\1"), (_REFERENCE, r"\1"), (_TAG, ""), (_ENTITY, "")):
            text = pattern.sub(kept, text)
        text = " ".join(_ADDRESS.sub("", text).split())
    return text
