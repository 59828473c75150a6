"""The event loop of the process: uvloop's where it is installed and wanted."""

import asyncio
import gc
import importlib.util
import sys

import pytest

from plimsoll.app.process import THRESHOLDS, loop_factory, run_to_end


def is_uvloop(wanted: str) -> bool:
    """Whether the event loop is uvloop's."""
    loop = loop_factory(wanted)()  # type: ignore[arg-type] # a test's own word
    loop.close()
    return type(loop).__module__.startswith("uvloop")


def test_asyncio_is_taken_where_it_is_wanted_or_nothing_else_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A platform may have no wheel of uvloop."""
    assert not is_uvloop("asyncio")
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert not is_uvloop("auto")


def test_uvloop_is_taken_where_it_is_installed() -> None:
    """Requirements leave it out where there is no wheel."""
    assert is_uvloop("auto") == (importlib.util.find_spec("uvloop") is not None)


def test_the_work_runs_to_its_end_with_fewer_collections() -> None:
    """And where it runs, the thresholds are set."""
    before, seen = gc.get_threshold(), []

    async def work() -> None:
        await asyncio.sleep(0)
        seen.append(gc.get_threshold())

    try:
        run_to_end(work(), "auto")
    finally:
        gc.set_threshold(*before)

    assert seen == [THRESHOLDS]
