"""Watches VerticalPodAutoscalers where the API server serves and the operator may read them.

Moves are proven with the requests that they recommend. Without them, moves are proven with what an owner's
newest pods request; in a cluster without the kind, the only cost is one discovery request a minute.
"""

from collections.abc import Callable

import structlog

from plimsoll.access.rights import READ_AUTOSCALERS
from plimsoll.app.optional_kinds.unwatched import FIRST_S, unwatched
from plimsoll.app.shared_parts import SharedParts
from plimsoll.cluster.watched_resources import AUTOSCALERS
from plimsoll.kube.reflector import Reflector
from plimsoll.kube.session.discovery import offered
from plimsoll.leadership.leader import Leadership
from plimsoll.model.kinds.watch_event import Synced, WatchEvent
from plimsoll.timing.signal import Signal
from plimsoll.timing.task_sets import first_of

#: The group that discovery is asked about.
GROUP = AUTOSCALERS.path.rpartition("/")[0]


class AutoscalerWatch:
    """Runs the watch.

    Args:
        ingest: Forwards events of a resource.
    """

    def __init__(
        self,
        parts: SharedParts,
        leadership: Leadership,
        ingest: Callable[[str, list[WatchEvent]], None],
    ) -> None:
        self._session, self._clock, self._access = parts.session, parts.clock, parts.access
        self._leadership, self._ingest = leadership, ingest
        self._is_known = Signal()
        self._is_settled = False  #: whether it is known which exist
        self._problem = ""  #: why they are not watched, as logged
        self._reflector = Reflector(
            parts.session,
            AUTOSCALERS,
            self._take,
            clock=parts.clock,
            randomness=parts.machine.randomness(parts.seed),
            observer=parts.observer,
            streaming=True,
        )

    def _take(self, events: list[WatchEvent]) -> None:
        self._ingest(AUTOSCALERS.name, events)
        if any(isinstance(event, Synced) for event in events):
            self._settle()

    def _settle(self) -> None:
        self._is_settled = True
        self._is_known.notify()

    async def run(self) -> None:
        """Watch until cancelled."""
        await self._leadership.tried.wait()
        needed = (AUTOSCALERS.name,)
        while True:
            answer = await offered(self._session, GROUP, needed)
            found = await unwatched(answer, READ_AUTOSCALERS, self._access)
            if found is None:
                break
            # A server that does not answer is reported once, and not for each kind.
            if found.is_answered and found.problem != self._problem:
                self._problem = found.problem
                log = structlog.get_logger("plimsoll")
                log.info("recommendations of VerticalPodAutoscalers are not read", problem=found.problem)
            self._settle()
            await self._clock.sleep(found.pause_s)
        await self._reflector.run()

    async def until_settled(self) -> None:
        """Wait briefly until it is known which exist."""
        await first_of(self._is_known.until(lambda: self._is_settled), self._clock.sleep(FIRST_S))
