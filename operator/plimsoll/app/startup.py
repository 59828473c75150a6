"""Mirrors the cluster, and takes the process from its first lists to leading."""

import asyncio
import functools
import gc
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from plimsoll.access.rights import (
    BIND,
    COMPOSITE_STATUS,
    MAINTENANCE_STATUS,
    POD_GROUP_STATUS,
    READ_AUTOSCALERS,
    READ_COMPOSITES,
    READ_MAINTENANCES,
    READ_POD_GROUPS,
)
from plimsoll.app.optional_kinds.device_watches import DeviceWatches
from plimsoll.app.optional_kinds.optional_watch import OptionalWatch
from plimsoll.app.optional_kinds.owner_watches import OwnerWatches
from plimsoll.app.optional_kinds.unwatched import briefly
from plimsoll.app.scheduling_wing import SchedulingWing
from plimsoll.app.shared_parts import SharedParts
from plimsoll.cluster.ingestion import EventSubscriber, OfTypes
from plimsoll.cluster.watch_events import PodUpdated, Synced, WatchEvent
from plimsoll.cluster.watched_resources import (
    AUTOSCALERS,
    CORE_COMPOSITES,
    CORE_POD_GROUPS,
    WATCHED,
    WatchedResource,
)
from plimsoll.kube.custom_resources import MAINTENANCES, RECORDS
from plimsoll.leadership.leader import Leadership
from plimsoll.model.kinds.watched_object import WatchedObjects
from plimsoll.rebalancing.wing import RebalancingWing
from plimsoll.scheduling.outdated_nodes import OutdatedNodes
from plimsoll.watches.reflector import Reflector, Sink

PODS, NODES = "pods", "nodes"

#: The resources that leaders write. A new leader lists these again, because a watch may lag behind. Leaders
#: write taints of nodes and the status of PodGroups; a standby does not notice that its view of them is
#: stale.
WRITTEN = frozenset((PODS, NODES, "podgroups", "persistentvolumes", "persistentvolumeclaims"))


class Startup:
    """Runs the reflectors, and the steps before the first decision.

    Args:
        wing: Its mirror receives the events.
        rebalancing: Receives events of Eviction records.
        subscribers: Observe all other events after the wing.
        was_led: Whether another process may have led this cluster before; called when the lists are complete.
        declared: Collections that plugins and strategies read.
        forgive: Called when one of these has been listed: its readers may have failed before.
    """

    def __init__(
        self,
        parts: SharedParts,
        leadership: Leadership,
        wing: SchedulingWing,
        rebalancing: RebalancingWing,
        subscribers: Sequence[EventSubscriber | OfTypes],
        was_led: Callable[[], Awaitable[bool]],
        declared: Sequence[WatchedResource] = (),
        forgive: Callable[[type], None] = lambda _: None,
    ) -> None:
        self._clock = parts.clock
        self._observer = parts.observer
        self._leadership = leadership
        self._wing = wing
        self._was_led = was_led
        self._forgive = forgive
        outdated = OutdatedNodes(wing.served, parts.clock, self._list_nodes)
        subscribers = (*subscribers, OfTypes((PodUpdated,), (outdated,)))
        self._ingestion = wing.ingestion(subscribers, parts.observer)
        sinks: dict[WatchedResource, Sink] = {
            resource: functools.partial(self._ingest, resource.name) for resource in WATCHED
        }
        sinks |= {resource: functools.partial(self._take_declared, resource) for resource in declared}
        records = {RECORDS: rebalancing.take_records} if not parts.operator else {}
        self._declared = {resource.name for resource in declared}
        randomness = parts.machine.randomness(parts.seed)
        self._reflectors = [
            Reflector(
                parts.session,
                resource,
                sink,
                clock=parts.clock,
                randomness=randomness,
                observer=parts.observer,
                streaming=True,
            )
            for resource, sink in {**sinks, **records}.items()
        ]

        self._devices = DeviceWatches(parts, leadership, wing, self._ingest)
        self._autoscalers = OptionalWatch(
            parts,
            leadership,
            (AUTOSCALERS,),
            lambda: READ_AUTOSCALERS,
            self._ingest,
            "recommendations of VerticalPodAutoscalers are not read",
        )
        self._pod_groups = OptionalWatch(
            parts,
            leadership,
            CORE_POD_GROUPS,
            # Without the right to bind, groups are read for plans only.
            lambda: (*READ_POD_GROUPS, *((POD_GROUP_STATUS,) if parts.access.allows(BIND) else ())),
            self._ingest,
            "pods of PodGroups of scheduling.k8s.io wait, all others are served",
            parts.groups.watch_core,
        )
        self._composites = OptionalWatch(
            parts,
            leadership,
            CORE_COMPOSITES,
            lambda: (*READ_COMPOSITES, *((COMPOSITE_STATUS,) if parts.access.allows(BIND) else ())),
            self._ingest,
            "pods of groups of CompositePodGroups wait, all others are served",
            parts.groups.watch_composites,
        )
        maintenances = OptionalWatch(
            parts,
            leadership,
            (MAINTENANCES,),
            lambda: (*READ_MAINTENANCES, MAINTENANCE_STATUS),
            lambda _, events: rebalancing.maintenances.take(events),
            "NodeMaintenances are not carried out",
        )
        # An operator with a name places pods only: records, maintenances and moves have one keeper.
        self._maintenances: dict[str, OptionalWatch] = (
            {"node maintenances": maintenances} if not parts.operator else {}
        )
        self._owners = OwnerWatches(parts, leadership, self._ingest)

    @property
    def work(self) -> Mapping[str, Coroutine[Any, Any, None]]:
        """The watches, keyed by task."""
        watches = {f"watch of {each.resource.name}": self._mirror(each) for each in self._reflectors}
        return {
            **watches,
            "devices": self._devices.run(),
            "autoscalers": self._autoscalers.run(),
            "pod groups": self._pod_groups.run(),
            "composite pod groups": self._composites.run(),
            **{name: each.run() for name, each in self._maintenances.items()},
            "owners of groups": self._owners.run(),
        }

    async def _mirror(self, reflector: Reflector) -> None:
        """Open watches once the leader is known: taking a lease that was free before needs no second list."""
        await self._leadership.tried.wait()
        await reflector.run()

    def _ingest(self, resource: str, events: list[WatchEvent]) -> None:
        began = self._clock.monotonic()
        self._ingestion.apply(events)
        self._observer.batch_taken_in(resource, len(events), self._clock.monotonic() - began)

    def _take_declared(self, resource: WatchedResource, events: list[WatchEvent]) -> None:
        self._ingest(resource.name, events)
        if any(isinstance(event, Synced) and event.is_served for event in events):
            self._forgive(resource.kind)
            objects = self._wing.mirror.cache.cluster.objects
            objects.ledger(WatchedObjects).listed.add(resource.kind)
            objects.version += 1

    async def _until_declared(self) -> None:
        """Wait briefly for what plugins declare: the kind, or the right to read it, may be missing."""
        mirror = self._wing.mirror
        await briefly(mirror.listed.until(lambda: self._declared <= mirror.synced), self._clock)

    def _list_nodes(self) -> None:
        """List nodes again, because the state from their watch is in doubt."""
        for each in self._reflectors:
            if each.resource.name == NODES:
                each.list_since(self._clock.monotonic())

    def unready(self) -> str:
        """The missing lists, "" when all are complete."""
        missing = {resource.name for resource in WATCHED} - self._wing.mirror.synced
        return f"waiting for the first list of {', '.join(sorted(missing))}" if missing else ""

    async def until_leading(self) -> None:
        """Wait until the cluster is known and this process leads, then for all writes of earlier leaders."""
        with _uncollected():
            await self._wing.mirror.listed.until(lambda: not self.unready())
        optional: tuple[DeviceWatches | OptionalWatch, ...] = (
            self._devices,
            self._autoscalers,
            self._pod_groups,
            self._composites,
            *self._maintenances.values(),
        )
        await asyncio.gather(*(each.until_settled() for each in optional), self._until_declared())
        self._leadership.stand(was_led=await self._was_led())
        await self._leadership.acquired.wait()
        await self.until_listed(self._leadership.since or 0.0)
        self._wing.take_over()

    async def until_listed(self, since: float) -> None:
        """Wait for everything that other processes wrote before this monotonic time."""
        written = [each for each in self._reflectors if each.resource.name in WRITTEN]
        for each in written:
            each.list_since(since)
        for each in written:
            await each.until_listed(since)
        await self._devices.until_listed(since)
        await self._pod_groups.until_listed(since)
        await self._composites.until_listed(since)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Disable garbage collection until the first lists are complete, and exclude their objects from it.

    At 100,000 pods a full collection takes half a second, in which no thread runs. Reference counts still
    free these objects.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        if was_enabled:
            gc.enable()
