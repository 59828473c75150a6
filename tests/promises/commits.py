"""Commits are what an API server has written, each with the request that made it and its time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Obj = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Author:
    """Who wrote, by which request; the name is "" for controllers, kubelets and people.

    Attributes:
        name: Of the process.
        identity: In the election.
    """

    name: str = ""
    identity: str = ""
    method: str = ""
    path: str = ""
    body: bytes = b""


UNKNOWN = Author()


@dataclass(frozen=True, slots=True)
class Commit:
    """One committed write.

    Attributes:
        collection: ``pods``, ``deployments.apps``, ``evictions.plimsoll.dev``.
        type: ``ADDED``, ``MODIFIED`` or ``DELETED``.
        obj: After the write; of a deletion, as it was last.
        before: Before it; None where it was not there, or where who hands it over does not know: then the
            checker's own view tells.
        at: Seconds, of one clock for all commits.
    """

    collection: str
    type: str
    obj: Obj
    before: Obj | None = None
    author: Author = UNKNOWN
    at: float = 0.0

    @property
    def key(self) -> tuple[str, str]:
        """Namespace, "" for objects without one, and name."""
        return key_of(self.obj)


def key_of(obj: Obj) -> tuple[str, str]:
    """Namespace, "" for objects without one, and name."""
    meta = obj["metadata"]
    return meta.get("namespace") or "", meta["name"]
