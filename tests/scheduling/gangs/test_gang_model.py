"""Gangs against a plain count of pods and rooms, when everything happens twice.

Two groups and some single pods want a room each. Groups and pods end, leave and are made again under their
names, bindings fail, and nodes come. A pod counts as placed from the decision on.
"""

import asyncio
import random
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.cluster.reservations import ReservationReason
from plimsoll.cluster.watch_events import (
    NodeAdded,
    ObjectAdded,
    ObjectDeleted,
    ObjectUpdated,
    PodAdded,
    PodDeleted,
    PodUpdated,
)
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.pod_group import PodGroup
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.testing.builders import a_node, a_pod
from scheduling.gangs.gang_scene import GangScene, gang_scene

GROUPS = ("a", "b")
TIMEOUT_S = 30
STEPS = 8
RESTS = 2


class GangModel:
    """What the API server holds, and a count of it."""

    def __init__(self, scene: GangScene, draw: random.Random) -> None:
        self.scene, self.draw = scene, draw
        self.rooms = {"n0": 3}
        self.groups: dict[str, PodGroup] = {}
        self.pods: dict[str, Pod] = {}
        self.made = 0
        self.failing: dict[str, int] = {}
        self.failed: set[str] = set()
        scene.binder.before = self._before_binding

    async def _before_binding(self, pod: Pod, _: str) -> None:
        fails = self.failing.get(pod.name, 0) > 0
        if fails:
            self.failing[pod.name] -= 1
            self.failed.add(pod.name)
        self.scene.binder.answer = WriteResult(WriteOutcome.REFUSED if fails else WriteOutcome.DONE)

    def uid(self) -> str:
        """A new one."""
        self.made += 1
        return f"uid-{self.made}"

    def node_of(self, pod: Pod) -> str:
        """Where it runs, or will."""
        return str(pod.node_name or self.scene.cache.node_of(pod.uid) or "")

    def members(self, name: str) -> list[Pod]:
        """The pods of a group that have not failed."""
        return [
            each for each in self.pods.values() if group_of(each) == name and each.status.phase != "Failed"
        ]

    def placed(self, name: str) -> int:
        """Members that have a node or have succeeded."""
        return sum(bool(self.node_of(each)) or each.is_terminal for each in self.members(name))

    def free(self) -> int:
        """Rooms without a pod and without a promise."""
        taken = [self.node_of(each) for each in self.pods.values() if not each.is_terminal]
        held = [node for node, pods in self.scene.nominator.by_node.items() for _ in pods]
        assert all(taken.count(node) <= room for node, room in self.rooms.items())
        return sum(max(room - taken.count(node) - held.count(node), 0) for node, room in self.rooms.items())

    # -- what happens --------------------------------------------------------------------------------

    async def group_comes_or_goes(self) -> None:
        name = self.draw.choice(GROUPS)
        old = self.groups.pop(name, None)
        if old is not None and self.draw.random() < 0.5:
            await self.see(ObjectDeleted(old))
            self.scene.group_statuses.statuses.pop(name, None)
            return
        uid = self.uid() if old is None else old.metadata.uid
        metadata = {"name": name, "namespace": "default", "uid": uid}
        spec = {"minMember": self.draw.randint(1, 3), "scheduleTimeoutSeconds": TIMEOUT_S}
        new = self.groups[name] = convert(PodGroup, {"metadata": metadata, "spec": spec})
        await self.see(ObjectAdded(new) if old is None else ObjectUpdated(old, new))

    async def pods_come(self) -> None:
        owner = self.draw.choice((*GROUPS, *GROUPS, ""))
        for number in self.draw.sample(range(3), self.draw.choice((1, 2, 3, 3)) if owner else 1):
            name = f"{owner or 'lone'}-{number}"
            if name in self.pods:
                continue
            labels = {"plimsoll.dev/pod-group": owner} if owner else {}
            pod = a_pod(name, uid=self.uid(), schedulerName="s", labels=labels, cpu="1")
            self.pods[name] = pod
            if owner and self.draw.random() < 0.3:
                self.failing[name] = self.draw.choice((1, 99))
            await self.see(PodAdded(pod))

    async def pod_goes(self) -> None:
        whose = self.draw.choice((*GROUPS, "lone", ""))
        found = sorted(name for name in self.pods if name.startswith(whose))
        for name in self.draw.sample(found, min(len(found), self.draw.choice((1, 2, 3)))):
            pod = self.pods.pop(name)
            self.scene.binder.bound.pop(f"default/{name}", None)
            await self.see(PodDeleted(pod))

    async def pod_ends(self) -> None:
        running = [name for name, each in self.pods.items() if each.node_name and not each.is_terminal]
        if running:
            name = self.draw.choice(running)
            await self.updated(name, self.draw.choice(("Succeeded", "Failed")))

    async def node_comes(self) -> None:
        if len(self.rooms) < 2:
            name, self.rooms[name] = "n1", self.draw.randint(1, 3)
            await self.see(NodeAdded(a_node(name, cpu=str(self.rooms[name]))))

    async def time_passes(self) -> None:
        await self.scene.clock.advance(self.draw.choice((1, 5, TIMEOUT_S)))

    # -- what follows --------------------------------------------------------------------------------

    async def updated(self, name: str, phase: str = "Running") -> None:
        old = self.pods[name]
        node = self.scene.binder.bound[f"default/{name}"]
        spec = msgspec.structs.replace(old.spec, node_name=node)
        status = msgspec.structs.replace(old.status, phase=phase)
        self.pods[name] = msgspec.structs.replace(old, spec=spec, status=status)
        await self.see(PodUpdated(old, self.pods[name]))

    async def see(self, event: Any) -> None:
        """One event, and whether what begins then begins whole."""
        before = {name: self.placed(name) for name in self.groups}
        self.failed.clear()
        await self.scene.see(event)
        self.free()
        kept = {each.pod.name for each in self.scene.book.of_reason(ReservationReason.GANG)}
        for name, group in self.groups.items():
            lost = {each for each in self.failed if each.startswith(name)}
            now, needed = self.placed(name), group.spec.min_member
            if now > before[name] or lost:
                assert now + len(lost) >= needed, "a part of a group has begun"
            if before[name] == 0 and now < needed:
                assert not lost or now + len(kept & lost) >= needed, "a start keeps no room"

    async def confirmed(self) -> None:
        """The watch shows what is bound."""
        for name, pod in list(self.pods.items()):
            if f"default/{name}" in self.scene.binder.bound and not pod.node_name:
                await self.updated(name)

    async def step(self) -> None:
        """Something happens; mostly the watch shows then what is bound."""
        self.failed.clear()
        happens = self.draw.choice(
            [self.group_comes_or_goes] * 2
            + [self.pods_come] * 4
            + [self.pod_goes, self.pod_goes, self.pod_ends, self.node_comes, self.time_passes]
        )
        await happens()
        if self.draw.random() < 0.8:
            await self.confirmed()

    async def rest(self) -> None:
        """Long enough that whatever may begin has begun, and is reported."""
        for seconds in (TIMEOUT_S + 15, TIMEOUT_S + 15, 15, 2):
            await self.scene.clock.advance(seconds)
            self.failing.clear()
            await self.confirmed()
        assert not self.scene.book.of_reason(ReservationReason.GANG), "room is kept for too long"
        free = self.free()
        for pod in self.pods.values():
            name, is_idle = group_of(pod), not self.node_of(pod) and not pod.is_terminal
            if is_idle and not name:
                assert not free, f"{pod.name} waits although there is room"
        for name, group in self.groups.items():
            waiting = sum(not self.node_of(each) and not each.is_terminal for each in self.members(name))
            needed = max(group.spec.min_member - self.placed(name), 1)
            assert min(waiting, free) < needed, f"group {name} waits although there is room"
            self.reported(name)

    def reported(self, name: str) -> None:
        """The status says what a count of the pods says."""
        of = [each for each in self.pods.values() if group_of(each) == name]
        least, phases = self.groups[name].spec.min_member, [each.status.phase for each in of]
        running, succeeded, failed = map(phases.count, ("Running", "Succeeded", "Failed"))
        if succeeded >= least:
            expected = {"Finished"}
        elif failed and failed + running + succeeded >= least:
            expected = {"Failed"}
        elif running + succeeded >= least:
            expected = {"Running"}
        elif running + succeeded:
            expected = {"Scheduling", "Unknown"}
        else:
            expected = {"Pending"}
        present = len(phases) - failed
        status = self.scene.group_statuses.statuses[name]
        assert status["phase"] in expected, (status, phases, least)
        counts = [status.get(each, 0) for each in ("running", "scheduled", "succeeded", "failed")]
        assert counts == [running, running, succeeded, failed]
        said = status["conditions"][0]["message"].startswith(
            f"cannot find enough sibling pods, current pods number: {present},"
        )
        assert said == (present < least and expected <= {"Pending", "Scheduling", "Unknown"})


def group_of(pod: Pod) -> str:
    """The name of its group, "" without one."""
    return str(pod.metadata.labels.get("plimsoll.dev/pod-group", ""))


@given(seed=st.integers(0, 2**32))
def test_gangs_begin_whole_wait_for_room_only_and_are_reported(seed: int) -> None:
    async def play() -> None:
        async with gang_scene(nodes=1, cpu="3") as scene:
            model = GangModel(scene, random.Random(seed))
            for _ in range(RESTS):
                for _ in range(STEPS):
                    await model.step()
                await model.rest()

    asyncio.run(play())
