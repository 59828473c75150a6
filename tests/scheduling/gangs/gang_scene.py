"""A scheduling loop between fakes that knows gangs, with the reports on them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from cluster.invariants import check_cache
from plimsoll.access.rights import Access
from plimsoll.app.scheduling_wing import GangParts
from plimsoll.cluster.pod_groups import Groups
from plimsoll.cluster.watch_events import NodeAdded, ObjectAdded
from plimsoll.engine.profile import Enabled
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.composite_pod_group import CompositePodGroup
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.pod_group import CorePodGroup, PodGroup
from plimsoll.ports.writes import WriteResult
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.fakes import (
    DONE,
    FakeClaims,
    FakeClock,
    RememberingObserver,
)
from plimsoll.timing.timer import Timer
from plimsoll.toolkit.scheduling.topology_levels import NO_RULES, GroupRules
from scheduling.queue.invariants import check_queue
from scheduling.wing_scene import WingScene


def a_group(name: str = "train", members: int = 3, **spec: Any) -> PodGroup:
    """A PodGroup."""
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    return convert(PodGroup, {"metadata": metadata, "spec": {"minMember": members, **spec}})


def a_core_group(
    name: str = "train", least: int | None = 3, topology: str = "", uid: str = "", **spec: Any
) -> CorePodGroup:
    """A PodGroup of the core API: a gang, or with policy ``basic`` if ``least`` is None."""
    policy = {"basic": {}} if least is None else {"gang": {"minCount": least}}
    constraints = {"topology": [{"key": topology}]} if topology else None
    metadata = {"name": name, "namespace": "default", "uid": uid or f"uid-{name}", "generation": 1}
    whole = {"schedulingPolicy": policy, "schedulingConstraints": constraints, **spec}
    return convert(CorePodGroup, {"metadata": metadata, "spec": whole})


def a_composite(
    name: str = "all", least: int | None = 2, topology: str = "", **spec: Any
) -> CompositePodGroup:
    """A CompositePodGroup: a gang of groups, or with policy ``basic`` if ``least`` is None."""
    policy = {"basic": {}} if least is None else {"gang": {"minGroupCount": least}}
    constraints = {"topology": [{"key": topology}]} if topology else None
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "generation": 1}
    whole = {"schedulingPolicy": policy, "schedulingConstraints": constraints, **spec}
    return convert(CompositePodGroup, {"metadata": metadata, "spec": whole})


def a_part(name: str, parent: str = "all", **more: Any) -> CorePodGroup:
    """A PodGroup of a CompositePodGroup."""
    return a_core_group(name, parentCompositePodGroupName=parent, **more)


def core_members(count: int, group: str = "train", cpu: str = "1", first: int = 0, **more: Any) -> list[Pod]:
    """Equal pods that name a PodGroup of the core API."""
    named: dict[str, Any] = {"schedulingGroup": {"podGroupName": group}}
    names = [f"{group}-{number}" for number in range(first, first + count)]
    return [a_pod(name, schedulerName="s", cpu=cpu, **named, **more) for name in names]


def a_member(name: str, group: str = "train", label: str = "plimsoll.dev/pod-group", **more: Any) -> Pod:
    """A pod of a gang."""
    return a_pod(name, schedulerName="s", labels={label: group}, **more)


def members(count: int, group: str = "train", cpu: str = "1", **more: Any) -> list[Pod]:
    """Equal pods of a gang."""
    return [a_member(f"{group}-{number}", group, cpu=cpu, **more) for number in range(count)]


class FakeGroupStatuses:
    """Keeps the status of each PodGroup under its name."""

    def __init__(self) -> None:
        self.answer = DONE
        self.statuses: dict[Any, Any] = {}
        self.phases: dict[Any, Any] = {}
        self.conditions: dict[str, list[Any]] = {}

    async def write_status(self, namespace: str, name: str, status: Any) -> WriteResult:
        """Keep it when it is taken."""
        if self.answer.is_done:
            self.statuses[name] = status
            self.phases.setdefault(name, []).append(status["phase"])
        return self.answer

    async def write_condition(
        self, version: str, group: PodGroup | CompositePodGroup, condition: Any
    ) -> WriteResult:
        """Keep a core group's condition when it is taken."""
        if self.answer.is_done:
            self.conditions.setdefault(group.name, []).append((version, condition))
        return self.answer


class GangScene(WingScene):
    """Pods of scheduler ``s``, placed by the default plugins and more."""

    def __init__(
        self,
        *more: Any,
        args: Any = None,
        enabled: Any = (),
        claims: FakeClaims | None = None,
        access: Access | None = None,
        groups: GroupRules = NO_RULES,
    ) -> None:
        clock, observer, self.claims = FakeClock(), RememberingObserver(), claims or FakeClaims()
        self.groups, self.timer, self.group_statuses = Groups(), Timer(clock, observer), FakeGroupStatuses()
        super().__init__(
            clock=clock,
            observer=observer,
            ports={"claims": self.claims},
            gangs=GangParts(self.groups, self.group_statuses, self.timer),
            fair_share=True,
            access=access,
        )
        self.nominator, self.sharing, self.reports = self.book.nominator, self.wing.shares, self.wing.reports
        self.place(*more, args=args, enabled=map(Enabled, enabled), groups=groups)

    async def group(self, *args: Any, **spec: Any) -> None:
        """A PodGroup is created."""
        await self.see(ObjectAdded(a_group(*args, **spec)))

    def message(self, name: str) -> str:
        """Why a pod is not scheduled."""
        return self.statuses.conditions[name].message

    @property
    def bound(self) -> list[str]:
        """The names of the pods that are bound, sorted."""
        return sorted(key.partition("/")[2] for key in self.binder.bound)


@asynccontextmanager
async def gang_scene(
    *more: Any,
    args: dict[str, Any] | None = None,
    nodes: int = 2,
    cpu: str = "4",
    enabled: tuple[str, ...] = (),
    groups: GroupRules = NO_RULES,
) -> AsyncIterator[Any]:
    """A scene whose loop runs, on equal nodes."""
    one = GangScene(*more, args=args, enabled=enabled, groups=groups)
    tasks = [asyncio.ensure_future(one.wing.run()), asyncio.ensure_future(one.timer.run())]
    await one.see(*(NodeAdded(a_node(f"n{number}", cpu=cpu)) for number in range(nodes)))
    try:
        yield one
        assert not any(task.done() for task in tasks), "the loop has ended"
        assert one.observer.failures == []
        check_cache(one.cache)
        check_queue(one.queue)
    finally:
        for task in tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
