"""Settings of a test that needs no database: everything under a temporary folder, model servers on loopback."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.settings import Settings

MakeSettings = Callable[..., Settings]


@pytest.fixture
def make_settings(tmp_path: Path) -> MakeSettings:
    """Settings with a home and a cache of their own; nothing answers at the default Ollama address."""

    def make(**values: Any) -> Settings:
        defaults = {"home": tmp_path / "home", "cache": tmp_path / "cache", "ollama_url": "http://127.0.0.1:9"}
        return Settings.load(**{**defaults, **values})

    return make
