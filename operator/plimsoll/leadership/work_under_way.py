"""Remembers, in the lease, the pod whose attempt was under way for long when the process ended.

A renewal that finds the same attempt under way as the one before writes the pod into the lease, and the next
one that does not removes it. If the process ends meanwhile, the pod stays there, and the next leader tries
all others first.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(eq=False)
class WorkUnderWay:
    """The attempt under way; the thread of the election reads it.

    Attributes:
        attempt: Returns the number of the attempt under way, 0 for none, and the uid of its pod.
        left: By uid, how many processes in a row have ended while they tried the pod.
    """

    attempt: Callable[[], tuple[int, str]] = lambda: (0, "")
    left: Mapping[str, int] = field(default_factory=dict)
    _seen: int = 0
    _has_written: bool = False

    def noted(self) -> str:
        """What the lease says while it is ours: the uid and how many ended at it, or ""."""
        number, uid = self.attempt()
        is_long = number != 0 and number == self._seen
        self._seen, self._has_written = number, True
        return f"{uid}/{self.left.get(uid, 0) + 1}" if is_long else ""

    def found(self, text: str) -> None:
        """Take over what the lease of an earlier holder says."""
        uid, _, count = text.rpartition("/")
        if not self._has_written:
            self.left = {uid: int(count)} if uid and count.isdecimal() and len(count) < 4 else {}
