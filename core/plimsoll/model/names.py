"""Types of the strings that are easily taken for one another.

At run time each is a string; mypy refuses one where another is required, and a plain string where a name is.
A name is made where it enters: when an object is decoded, or a key is composed.
"""

from typing import NewType

#: Identifies a pod: one that is deleted and created again under its name has another uid.
PodUid = NewType("PodUid", str)

#: ``metadata.name`` of a Node.
NodeName = NewType("NodeName", str)

#: ``namespace/name`` of an Eviction record.
RecordKey = NewType("RecordKey", str)

#: A policy and the name of a bundle of moves, or the key of a single move's record.
BundleKey = NewType("BundleKey", str)

#: ``metadata.name`` of a SchedulingPolicy.
PolicyName = NewType("PolicyName", str)


def record_key(namespace: str, name: str) -> RecordKey:
    """The key of a record by its namespace and name."""
    return RecordKey(f"{namespace}/{name}")
