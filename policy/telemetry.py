"""What libraries would tell of themselves: each is made to do so, in a process that is sealed and armed.

A function returns the code of the switch that keeps the library quiet, None where nothing does.
"""

import ctypes
import io
import threading

from policy import ledger
from policy.egress import Policy

_SINK = "http://198.51.100.1"
_TABLE = "name,number\none,1\ntwo,2\n"


def tracing(policy: Policy) -> str | None:
    """Run a traced function with tracing asked for by the environment that this process started in."""
    import langsmith
    from langsmith.utils import tracing_is_enabled

    langsmith.traceable(lambda: None)()
    return None if tracing_is_enabled() else "tracing_off"


def trace_sent(policy: Policy) -> None:
    """Send a run to a tracing server by hand."""
    from langsmith import Client

    client = Client(api_url=_SINK, api_key="x", auto_batch_tracing=False, timeout_ms=1000)
    client.create_run("x", {}, "chain")


def documents(policy: Policy) -> str | None:
    """Import the document library and read a table, then wait for the threads that it may have started."""
    before = ledger.denials()
    from unstructured.partition.csv import partition_csv

    partition_csv(file=io.BytesIO(_TABLE.encode()), languages=["eng"])
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join(1)
    return "analytics_off" if ledger.denials() == before else None


def hub(policy: Policy) -> str | None:
    """Ask a model hub for a file."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        hf_hub_download("intramuros/none", "config.json", endpoint=_SINK)
    except LocalEntryNotFoundError as error:
        return None if "offline" not in str(error).lower() else "hub_offline"
    return None


def models(policy: Policy) -> str | None:
    """Import the library that runs the embedder. It would tell from C code, where only its switch can be looked at."""
    import onnxruntime

    # As C code sees it, and not this interpreter's own list of variables.
    seen = ctypes.CDLL(None)["getenv"]
    seen.restype = ctypes.c_char_p
    return "telemetry_off" if onnxruntime and seen(b"ORT_DISABLE_TELEMETRY") == b"1" else None


def plug_ins(policy: Policy) -> str | None:
    """Look for plug-ins that pydantic would load into this process."""
    from pydantic.plugin import _loader

    return "plug_ins_off" if not list(_loader.get_plugins()) else None
