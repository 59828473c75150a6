"""A scheduling wing between fakes: the one place where tests wire it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, Self

from cluster.invariants import check_book
from plimsoll.app.machine.clock import SeededRandomness
from plimsoll.app.scheduling_wing import PodPorts, SchedulingWing, WingParts
from plimsoll.cluster.cache import Cache
from plimsoll.cluster.reservations import ReservationBook
from plimsoll.cluster.watch_events import PodAdded
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import Registry
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.testing.fakes import (
    FakeBinder,
    FakeClaims,
    FakeClock,
    FakePreemptor,
    FakeRecorder,
    FakeStatuses,
    FakeVolumes,
    RememberingObserver,
    a_book,
    settled,
)
from plimsoll.toolkit.scheduling.topology_levels import NO_RULES, GroupRules


class WingScene:
    """A wing, and the fakes around it.

    Args:
        ports: Writers in place of fakes, by the field of PodPorts.
        parts: Optional parts, by the field of WingParts.
    """

    def __init__(
        self,
        *,
        clock: FakeClock | None = None,
        observer: Any = None,
        book: ReservationBook | None = None,
        ports: Mapping[str, Any] | None = None,
        **parts: Any,
    ) -> None:
        self.clock, self.book = clock or FakeClock(), book or a_book(Cache())
        self.cache, self.observer = self.book.cache, observer or RememberingObserver()
        self.binder, self.volumes, self.preemptor = FakeBinder(), FakeVolumes(), FakePreemptor()
        self.statuses, self.recorder = FakeStatuses(), FakeRecorder()
        fakes: dict[str, Any] = {
            "binder": self.binder,
            "volumes": self.volumes,
            "preemptor": self.preemptor,
            "statuses": self.statuses,
            "recorder": self.recorder,
            "claims": FakeClaims(),
        }
        written = PodPorts(**fakes | dict(ports or {}))
        self.wing = SchedulingWing(
            self.book, written, self.clock, SeededRandomness(0), self.observer, WingParts(**parts)
        )
        self.queue, self.loop = self.wing.queue, self.wing.loop
        self.ingestion = self.wing.ingestion((), self.observer)

    def place(
        self, *more: Any, args: Any = None, enabled: Iterable[Enabled] = (), groups: GroupRules = NO_RULES
    ) -> None:
        """Serve scheduler ``s`` with the default plugins and more."""
        names = [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items() if name != "DefaultBinder"]
        names += [*(Enabled(plugin.name) for plugin in more), *enabled, Enabled("DefaultBinder")]
        self.profile = build_profile(
            ProfileConfig("s", args=args or {}, groups=groups), Registry([*IN_TREE, *more]), names
        )
        scheduler = ProfileScheduler(self.profile, self.cache.cluster, nominator=self.book.nominator)
        self.wing.serve({"s": scheduler})

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        """The wing runs."""
        task = asyncio.ensure_future(self.wing.run())
        await settled()
        try:
            yield self
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def see(self, *events: Any) -> None:
        """The watches show this, and all that follows happens."""
        self.ingestion.apply(list(events))
        await settled()
        check_book(self.book)

    async def pods(self, *pods: Any) -> None:
        """Pods are created."""
        await self.see(*(PodAdded(pod) for pod in pods))
