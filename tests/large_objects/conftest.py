"""Lets Python count the blocks of every object."""

import pytest

from plimsoll.model import heavy_memory


@pytest.fixture(autouse=True)
def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """No object comes from the C library's heap, whatever other tests have switched on in this process.

    Of those only the end is counted, which would hide what an object leaves behind.
    """
    monkeypatch.setattr(heavy_memory, "_heavy", heavy_memory._NOTHING)
