"""The application that requests are made up for: the one that the tests of the interface use."""

from tests.integration.api.conftest import chat, proven, runtime, settings, site

__all__ = ["chat", "proven", "runtime", "settings", "site"]
