"""A server whose answers a test tells."""

import pytest

from kube.serving import told_server


@pytest.fixture
async def told(tmp_path):
    """The server and a session to it."""
    async with told_server(tmp_path) as both:
        yield both
