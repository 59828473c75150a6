"""Records what happens in a run: a hash of all of it, and the story for people who ask for it."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import structlog

#: Lines of a story that are kept.
STORY = 200_000


class Trace:
    """What has happened so far.

    Args:
        time: Virtual seconds.
        tells: Whether the story is kept, too.
    """

    def __init__(self, time: Callable[[], float], *, tells: bool = False) -> None:
        self._time = time
        self._hash = hashlib.blake2b(digest_size=16)
        self.tells = tells
        self.story: list[str] = []
        self.lines = 0

    def note(self, who: str, what: str, content: bytes = b"") -> None:
        """Something that the API server, or a client of it, can see; ``content`` counts, but is not told."""
        line = f"{self._time():.6f} {who:<12} {what}"
        self.lines += 1
        self._hash.update(line.encode())
        self._hash.update(content)
        self.tell(line)

    def comment(self, who: str, what: str, facts: Mapping[str, object]) -> None:
        """A line of a log: told, not counted."""
        if self.tells:
            shown = " ".join(f"{key}={value}" for key, value in facts.items())
            self.tell(f"{self._time():.6f} {who:<12} | {what} {shown}")

    def tell(self, line: str) -> None:
        """Add to the story."""
        if self.tells and len(self.story) < STORY:
            self.story.append(line)

    @property
    def digest(self) -> str:
        """The hash of all that was noted."""
        return self._hash.hexdigest()


@contextmanager
def logs_told(trace: Trace, speaker: Callable[[], str]) -> Iterator[None]:
    """Logs become part of the story."""

    def tell(_logger: Any, level: str, event: Any) -> Any:
        sentence = str(event.pop("event", ""))
        trace.comment(speaker(), f"{level}: {sentence}", event)
        raise structlog.DropEvent

    before = structlog.get_config()
    structlog.configure(processors=[tell], cache_logger_on_first_use=False)
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)
        structlog.configure(**before)
