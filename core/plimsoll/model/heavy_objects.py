"""Tells large objects from others: nothing derived from a large one is kept when it has gone."""

import msgspec

#: Bytes, encoded, above which an object is heavy, or the deciding fields of a pod.
HEAVY_BYTES = 32_768


def is_heavy(each: msgspec.Struct) -> bool:
    """Whether an object is so large that no cache may keep it when it has gone."""
    return len(msgspec.msgpack.encode(each)) > HEAVY_BYTES
