"""Says what stands against the watch of kinds that many clusters do not have."""

from collections.abc import Coroutine, Iterable
from dataclasses import dataclass
from typing import Any

from plimsoll.access.rights import Access, Right, told
from plimsoll.ports.clock import Clock
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.timing.task_sets import first_of

#: Seconds between two requests to a server that does not serve the kinds, or does not allow to read them.
ASK_S = 60.0

#: Seconds between two requests to a server that did not respond.
RETRY_S = 5.0

#: Maximum wait of the first decision for the first lists, in seconds.
FIRST_S = 5.0


@dataclass(frozen=True, slots=True)
class Unwatched:
    """Why kinds are not watched.

    Attributes:
        problem: A sentence; "" if the server does not have them, which needs no action.
        is_answered: Whether the server has said so, as opposed to a server that did not respond.
    """

    problem: str
    is_answered: bool = True

    @property
    def pause_s(self) -> float:
        """Seconds until it is worth looking again."""
        return ASK_S if self.is_answered else RETRY_S


async def unwatched(offered: WriteResult, needed: Iterable[Right], access: Access) -> Unwatched | None:
    """Why kinds are not watched; None if they can be.

    Args:
        offered: The answer of discovery.
        needed: The rights that the watch needs.
        access: Reviews them.
    """
    if offered.verdict is WriteOutcome.GONE:
        return Unwatched("")
    if not offered.is_done:
        return Unwatched(offered.message, is_answered=False)
    missing = await access.missing(needed)
    return Unwatched(told(missing)) if missing else None


async def briefly(wait: Coroutine[Any, Any, object], clock: Clock) -> None:
    """Wait for what the first decision needs to know, but for ``FIRST_S`` at most."""
    await first_of(wait, clock.sleep(FIRST_S))
