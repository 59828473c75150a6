"""Passages are the requests that a proxy has seen, with their times, senders and answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import IO, Any


@dataclass(slots=True)
class Passage:
    """One request; times are seconds since the run began.

    Attributes:
        sender: A life of an operator, as ``red.3``.
        path: Without the query.
        arrived: When the proxy had read it whole.
        passed_on: When it was sent to the API server; None if never.
        answered: When the API server's answer was read whole; None if never.
        status: Of that answer, which the sender need not have received.
        version: The resourceVersion of the object in it.
        fault: What was done to it.
    """

    sender: str
    method: str
    path: str
    query: str
    body: bytes
    arrived: float
    passed_on: float | None = None
    answered: float | None = None
    status: int = 0
    version: str = ""
    fault: str = ""

    @property
    def is_write(self) -> bool:
        """Whether it may change something."""
        return self.method != "GET"

    def line(self) -> str:
        """A line of JSON; bodies of writes are part of it."""
        return json.dumps({**asdict(self), "body": self.body.decode("utf-8", "replace")})

    @classmethod
    def read(cls, line: str) -> Passage:
        """What :meth:`line` has written."""
        found: dict[str, Any] = json.loads(line)
        return cls(**{**found, "body": found["body"].encode()})


@dataclass(slots=True)
class Passages:
    """All of a run.

    Attributes:
        file: Where each is written when it is over.
        clock: Seconds since the run began.
        writes: Those that may change something and were passed on, in that order.
        seen: How many there were.
        identities: In the election, by sender, as their own writes to the lease say.
    """

    file: IO[str]
    clock: Callable[[], float]
    writes: list[Passage] = field(default_factory=list)
    seen: int = 0
    identities: dict[str, str] = field(default_factory=dict)

    def passed(self, passage: Passage) -> None:
        """It is on its way to the API server."""
        if passage.is_write:
            self.writes.append(passage)
            note_identity(self.identities, passage)

    def over(self, passage: Passage) -> None:
        """It has been answered, or never will be."""
        self.seen += 1
        self.file.write(passage.line() + "\n")


def note_identity(identities: dict[str, str], passage: Passage) -> None:
    """Learn from a write to a lease which identity its sender has in the election."""
    if "/leases" not in passage.path or not passage.body:
        return
    spec = (json.loads(passage.body) or {}).get("spec") or {}
    if holder := spec.get("holderIdentity"):
        identities.setdefault(passage.sender, holder)
