"""A server whose answers a test scripts."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kube.scripted_server import told_server


@pytest.fixture
async def told(tmp_path: Path) -> AsyncIterator[Any]:
    """The server and a session to it."""
    async with told_server(tmp_path) as both:
        yield both
