"""Makes an input that fails as small as it can be while it fails in the same way."""

from __future__ import annotations

import time
from collections.abc import Callable

#: Seconds that this may take.
PATIENCE_S = 20.0


def minimal(data: bytes, fails: Callable[[bytes], bool]) -> bytes:
    """The smallest input found by leaving parts out, the largest parts first."""
    until = time.monotonic() + PATIENCE_S
    size = len(data) // 2
    while size and time.monotonic() < until:
        at, is_smaller = 0, False
        while at < len(data) and time.monotonic() < until:
            fewer = data[:at] + data[at + size :]
            if fails(fewer):
                data, is_smaller = fewer, True
            else:
                at += size
        if not is_smaller or size > len(data):
            size = min(size // 2, len(data) // 2) if size > 1 else 0
    return data
