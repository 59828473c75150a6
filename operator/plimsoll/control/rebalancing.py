"""policy → strategies → plan → re-validate → record → evict → verify."""

import asyncio
from collections.abc import Mapping, Sequence

from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.control.ports import Clock, Evictor, PolicyStatusWriter, Recorder, Records
from plimsoll.engine.profile import Profile
from plimsoll.framework.observer import Observer
from plimsoll.model.event import ClusterEvent
from plimsoll.state.cache import Cache


class Rebalancers:
    def __init__(
        self,
        *,
        cache: Cache,
        evictor: Evictor,
        records: Records,
        recorder: Recorder,
        statuses: PolicyStatusWriter,
        clock: Clock,
        observer: Observer,
    ) -> None:
        self.profiles: Mapping[str, Profile] = {}

    def check(self, policy: SchedulingPolicy) -> None: ...
    def configure(self, policies: Sequence[SchedulingPolicy]) -> None: ...
    def observe(self, event: ClusterEvent) -> None: ...
    async def run(self) -> None:
        await asyncio.Event().wait()
