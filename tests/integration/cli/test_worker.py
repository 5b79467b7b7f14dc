"""`intramuros worker`: a process of its own beside whoever queues."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

from core.records import Tenant
from core.settings import Settings
from ingest.files import FileStore
from ingest.pipeline import Ingestor
from storage import documents, users
from storage.database import Database
from tests.conftest import DatabaseUnderTest
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.reader import LineReader
from tests.paths import PROJECT


def test_it_says_what_it_does_and_its_options() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "api.main", "worker", "--help"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    ).stdout
    assert "--concurrency" in shown
    assert "others take over its documents" in " ".join(shown.split())


async def test_it_works_on_the_queue_and_stops_when_told(
    database: Database, tenant: Tenant, fresh: DatabaseUnderTest, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    ingestor = Ingestor(database, FakeEmbedder(), FileStore(home), Settings(home=home), LineReader())
    # Nothing of it needs a model: the reason of its failure says that it was read.
    queued = await ingestor.accept_upload(tenant.id, "open", "broken.pdf", b"%PDF-1.7 cut short")
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG")}
    addresses = {
        "INTRAMUROS_HOME": str(home),
        "INTRAMUROS_DATABASE_URL": fresh.app_dsn,
        "INTRAMUROS_DATABASE_OWNER_URL": fresh.owner_dsn,
        "INTRAMUROS_LOG_LEVEL": "info",
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "api.main", "worker", "--concurrency", "1"),
        cwd=PROJECT,
        env={**kept, **addresses},
        stderr=asyncio.subprocess.PIPE,
    )
    said = []
    try:
        assert process.stderr
        async with asyncio.timeout(120):
            async for line in process.stderr:
                said.append(line)
                if b"document failed" in line:
                    break
            process.send_signal(signal.SIGTERM)
            await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    assert process.returncode == 0, said
    document = await documents.get(database, users.operator(tenant.id), queued.id)
    assert (document.state, document.reason_code) == ("failed", "damaged_file")
