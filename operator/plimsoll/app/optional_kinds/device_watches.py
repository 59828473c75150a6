"""Watches devices and claims (resource.k8s.io/v1) where the API server serves and the operator may read them.

In a cluster without them, the only cost is one discovery request a minute. Pods with claims are scheduled
once all three kinds have been listed.
"""

import asyncio
from collections.abc import Callable

import structlog

from plimsoll.access.rights import ALLOCATE, BIND, READ_DEVICES
from plimsoll.app.optional_kinds.unwatched import briefly, unwatched
from plimsoll.app.scheduling_wing import SchedulingWing
from plimsoll.app.shared_parts import SharedParts
from plimsoll.cluster.watch_events import Synced, WatchEvent
from plimsoll.cluster.watched_resources import DEVICES
from plimsoll.kube.resource_claims import ResourceClaims
from plimsoll.leadership.leader import Leadership
from plimsoll.timing.signal import Signal
from plimsoll.watches.reflector import Reflector

#: Seconds between two checks of how long drivers have taken to prepare devices.
TIME_S = 5.0

#: The kind that leaders write.
CLAIMS = "resourceclaims"

NOT_ALLOWED = "resource claims are not served: {}"


class DeviceWatches:
    """Runs the watches of the three kinds.

    Args:
        wing: Receives the events, and schedules pods with claims.
        ingest: Forwards events of a resource.
    """

    def __init__(
        self,
        parts: SharedParts,
        leadership: Leadership,
        wing: SchedulingWing,
        ingest: Callable[[str, list[WatchEvent]], None],
    ) -> None:
        self._clock, self._access, self._leadership = parts.clock, parts.access, leadership
        self._wing, self._ingest = wing, ingest
        self._claims = ResourceClaims(parts.session)
        self._listed: set[str] = set()
        self._is_known = Signal()
        self._is_settled = False  #: whether it is known if claims are served
        self._problem = ""  #: why claims are not served, as logged
        randomness = parts.machine.randomness(parts.seed)
        self._reflectors = [
            Reflector(
                parts.session,
                resource,
                self._sink(resource.name),
                clock=parts.clock,
                randomness=randomness,
                observer=parts.observer,
                streaming=True,
            )
            for resource in DEVICES
        ]
        self._of_claims = next(each for each in self._reflectors if each.resource.name == CLAIMS)

    def _sink(self, resource: str) -> Callable[[list[WatchEvent]], None]:
        def take(events: list[WatchEvent]) -> None:
            self._wing.devices.is_listing = self._of_claims.known.is_listing
            self._ingest(resource, events)
            if any(isinstance(event, Synced) for event in events):
                self._listed.add(resource)
                self._serve()

        return take

    def _serve(self) -> None:
        """Serve claims once everything has been listed."""
        if not self._is_served and len(self._listed) == len(DEVICES):
            self._wing.serve_devices(is_served=True)
            self._settle()

    def _settle(self) -> None:
        self._is_settled = True
        self._is_known.notify()

    @property
    def _is_served(self) -> bool:
        return self._wing.devices.book is not None

    async def run(self) -> None:
        """Watch until cancelled."""
        await self._leadership.tried.wait()
        while (pause_s := await self._asked()) is not None:
            self._settle()
            await self._clock.sleep(pause_s)
        async with asyncio.TaskGroup() as group:
            for each in self._reflectors:
                group.create_task(each.run(), name=f"watch of {each.resource.name}")
            while True:
                self._wing.devices.set_time()
                await self._clock.sleep(TIME_S)

    async def _asked(self) -> float | None:
        """Query the server; returns the seconds until the next query, None if devices are to be watched."""
        # Without the right to bind, devices are read for plans only.
        needed = READ_DEVICES + (ALLOCATE if self._access.allows(BIND) else ())
        found = await unwatched(await self._claims.offered(), needed, self._access)
        if found is None or not found.problem:
            return None if found is None else found.pause_s
        if found.problem != self._problem:
            self._problem = found.problem
            log = structlog.get_logger("plimsoll")
            log.info("pods with resource claims wait, all others are served", problem=found.problem)
        self._wing.serve_devices(is_served=False, why_not=NOT_ALLOWED.format(found.problem))
        return found.pause_s

    async def until_settled(self) -> None:
        """Wait briefly until it is known whether claims are served, and which exist."""
        await briefly(self._is_known.until(lambda: self._is_settled), self._clock)

    async def until_listed(self, since: float) -> None:
        """Wait for all claims that other processes wrote before this monotonic time."""
        if self._is_served:
            self._of_claims.list_since(since)
            await self._of_claims.until_listed(since)
