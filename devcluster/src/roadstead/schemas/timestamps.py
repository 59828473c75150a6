"""Times as the Kubernetes API writes them: RFC 3339 in UTC, in whole seconds."""

import datetime as dt
import functools


@functools.lru_cache(maxsize=4096)
def _to_timestamp(second: int) -> str:
    return dt.datetime.fromtimestamp(second, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def to_timestamp(seconds: float) -> str:
    """A time, given in seconds since the epoch, as ``metav1.Time``."""
    return _to_timestamp(int(seconds))


@functools.lru_cache(maxsize=4096)
def to_seconds(timestamp: str) -> float:
    """A ``metav1.Time`` or ``metav1.MicroTime`` in seconds since the epoch.

    Raises:
        ValueError: it is no such time.
    """
    return dt.datetime.fromisoformat(timestamp).timestamp()


def to_microtime(seconds: float) -> str:
    """A time, given in seconds since the epoch, as ``metav1.MicroTime``."""
    return dt.datetime.fromtimestamp(seconds, dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
