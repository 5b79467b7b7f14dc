"""The browser's language."""

import pytest
from starlette.requests import Request

from api.language import preferred


@pytest.mark.parametrize(
    ("header", "cookie", "expected"),
    [
        ("", "", "en"),
        ("zh-CN,zh;q=0.9,en;q=0.8", "", "zh"),
        ("en-GB,en;q=0.9,zh;q=0.8", "", "en"),
        ("fr-FR,de;q=0.9,zh;q=0.1", "", "zh"),
        ("en;q=0.1, zh-TW;q=0.2", "", "zh"),
        ("zh;q=0, en;q=0.1", "", "en"),
        ("zh;q=x", "", "en"),
        ("*", "", "en"),
        ("en", "lang=zh", "zh"),
        ("zh", "lang=en", "en"),
        ("zh", "lang=xx", "zh"),
        ("," * 5000, "", "en"),
    ],
)
def test_preferred(header: str, cookie: str, expected: str) -> None:
    headers = [(b"accept-language", header.encode()), (b"cookie", cookie.encode())]
    assert preferred(Request({"type": "http", "headers": headers})) == expected
