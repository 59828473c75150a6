"""Watches a kind where the API server serves it and the operator may read it; otherwise asks once a minute.

VerticalPodAutoscalers: moves are proven with the requests that they recommend; without them, with what an
owner's newest pods request. PodGroups of the core API: their pods start together.
"""

from collections.abc import Callable, Iterable, Sequence

import structlog

from plimsoll.access.rights import Right
from plimsoll.app.optional_kinds.unwatched import briefly, unwatched
from plimsoll.app.shared_parts import SharedParts
from plimsoll.cluster.watch_events import Synced, WatchEvent
from plimsoll.cluster.watched_resources import WatchedResource
from plimsoll.kube.session.discovery import first_offered
from plimsoll.leadership.leader import Leadership
from plimsoll.timing.signal import Signal
from plimsoll.watches.reflector import Reflector


class OptionalWatch:
    """Runs the watch.

    Args:
        versions: The kind in each of its versions, the preferred one first; one of them is watched.
        needed: The rights that the watch needs, at the time of asking.
        ingest: Forwards events of a resource.
        otherwise: The consequence, for the log, if the operator may not watch it.
        begins: Called with the version before its first event.
    """

    def __init__(
        self,
        parts: SharedParts,
        leadership: Leadership,
        versions: Sequence[WatchedResource],
        needed: Callable[[], Iterable[Right]],
        ingest: Callable[[str, list[WatchEvent]], None],
        otherwise: str,
        begins: Callable[[WatchedResource], None] = lambda _: None,
    ) -> None:
        self._parts, self._leadership, self._versions = parts, leadership, versions
        self._needed, self._ingest, self._otherwise, self._begins = needed, ingest, otherwise, begins
        self._is_known = Signal()
        self._is_settled = False  #: whether it is known which exist
        self._problem = ""  #: why they are not watched, as logged
        self._reflector: Reflector | None = None

    async def run(self) -> None:
        """Watch until cancelled."""
        await self._leadership.tried.wait()
        parts = self._parts
        while True:
            answer, resource = await first_offered(parts.session, self._versions)
            found = await unwatched(answer, self._needed(), parts.access)
            if found is None:
                break
            # A server that does not answer is reported once, and not for each kind.
            if found.is_answered and found.problem != self._problem:
                self._problem = found.problem
                structlog.get_logger("plimsoll").info(self._otherwise, problem=found.problem)
            self._settle()
            await parts.clock.sleep(found.pause_s)
        self._begins(resource)

        def take(events: list[WatchEvent]) -> None:
            self._ingest(resource.name, events)
            if any(isinstance(event, Synced) for event in events):
                self._settle()

        self._reflector = Reflector(
            parts.session,
            resource,
            take,
            clock=parts.clock,
            randomness=parts.machine.randomness(parts.seed),
            observer=parts.observer,
            streaming=True,
        )
        await self._reflector.run()

    def _settle(self) -> None:
        self._is_settled = True
        self._is_known.notify()

    async def until_settled(self) -> None:
        """Wait briefly until it is known which exist."""
        await briefly(self._is_known.until(lambda: self._is_settled), self._parts.clock)

    async def until_listed(self, since: float) -> None:
        """Wait for all that other processes wrote before this monotonic time."""
        if self._reflector is not None:
            self._reflector.list_since(since)
            await self._reflector.until_listed(since)
