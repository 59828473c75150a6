"""A group leaves whole or not at all: all places are reserved and announced before a pod is evicted."""

import asyncio
from collections import Counter
from typing import Any

import msgspec
import pytest

from plimsoll.cluster.watch_events import (
    NodeAdded,
    NodeDeleted,
    ObjectAdded,
    PodAdded,
    PodDeleted,
    PodUpdated,
)
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.pod_group import PodGroup
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.rebalancing.moves.events import RecordDeleted, StopPressed
from plimsoll.rebalancing.moves.outcomes import PATIENCE_S
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.fakes import FakeEvictor, FakeRecords, settled
from rebalancing.moves.test_approving import annotate
from rebalancing.scene import Scene, a_policy

RACK = "example.com/rack"
SIZE = 4
REFUSED = WriteResult(WriteOutcome.BLOCKED, "no", "default/train")


def member(number: int, node: str, *, uid: str = "", phase: str = "Running") -> Pod:
    """A pod of the Job train, which has run for days."""
    status = {"phase": phase, "startTime": "1970-03-01T00:00:00Z"}
    if phase == "Running":
        status["conditions"] = [{"type": "Ready", "status": "True"}]  # type: ignore[assignment] # as in the API
    return a_pod(
        f"train-{number}",
        owner="Job/train",
        cpu="2",
        node=node,
        uid=uid or f"train-{number}",
        labels={"plimsoll.dev/pod-group": "train"},
        status=status,
    )


def policy(mode: str = "Enforce", **more: Any) -> Any:
    return a_policy(
        mode,
        strategies=[{"name": "ImproveTopology"}],
        evictor={"minReplicas": 0},
        **{"limits": {"total": 9}, **more},
    )


class Straddling(Scene):
    """Four members in two racks, and a third rack with room for all of them."""

    def __init__(self, *documents: Any, evictor: Any = None, gone: int = 0) -> None:
        super().__init__(*documents, evictor=evictor)
        sizes = {"r1": 2, "r2": 2, "r3": SIZE}
        spec = {"minMember": SIZE, "topology": {"preferred": RACK}}
        self.members = [member(n, f"r{1 + n // 2}-{n % 2}") for n in range(SIZE)]
        self.tell(
            NodeDeleted(a_node("bad")),
            NodeDeleted(a_node("good")),
            *(
                NodeAdded(a_node(f"{rack}-{n}", cpu="2", labels={RACK: rack}))
                for rack, count in sizes.items()
                for n in range(count)
            ),
            ObjectAdded(
                convert(PodGroup, {"metadata": {"name": "train", "namespace": "default"}, "spec": spec})
            ),
            *(PodAdded(pod) for pod in self.members[gone:]),
        )

    @property
    def held(self) -> list[str]:
        """The nodes on which room is held."""
        return sorted(node for node, pods in self.nominator.by_node.items() if pods)

    @property
    def ends(self) -> Counter[str]:
        """How many records have come how far."""
        return Counter(phases[-1] for phases in self.phases)

    def replaced(self) -> None:
        """The pods that were evicted are gone, and their replacements run where room is held for them."""
        for number, name in enumerate(list(self.evictor.evicted)):
            old = next(pod for pod in self.members if pod.name == name)
            self.tell(PodDeleted(old))
            waiting = member(int(name[-1]), "", uid=f"new-{number}", phase="Pending")
            self.tell(PodAdded(waiting))
            (node,) = [node for node, pods in self.nominator.by_node.items() if f"new-{number}" in pods]
            self.tell(PodUpdated(waiting, member(int(name[-1]), node, uid=f"new-{number}")))


class Noting(FakeEvictor):
    """Notes at the first eviction what is held and announced; may hang at a later one."""

    def __init__(self, *answers: WriteResult, hangs_at: int = 99) -> None:
        super().__init__(*answers)
        self.scene: Any = None
        self.at_first: tuple[list[str], list[str]] | None = None
        self.hangs_at = hangs_at

    async def evict(self, pod: Pod) -> WriteResult:
        if self.at_first is None:
            self.at_first = self.scene.held, sorted(phases[-1] for phases in self.scene.phases)
        if len(self.evicted) >= self.hangs_at:
            await asyncio.Event().wait()
        return await super().evict(pod)


def a_scene(*answers: WriteResult, hangs_at: int = 99) -> Any:
    evictor = Noting(*answers, hangs_at=hangs_at)
    evictor.scene = Straddling(evictor=evictor)
    return evictor.scene


async def test_all_places_are_held_and_announced_before_the_first_pod_leaves() -> None:
    """Then all leave, and all are verified in the one rack."""
    scene = a_scene()

    async with scene.running(policy()):
        await scene.run()
        assert scene.evictor.at_first == ([f"r3-{n}" for n in range(SIZE)], ["Evicting"] * SIZE)
        assert len(scene.evictor.evicted) == SIZE
        scene.replaced()
        await settled()

    assert scene.ends == {"Settled": SIZE}
    assert scene.held == []
    bundles = [document["spec"]["bundle"] for document in scene.records.documents.values()]
    assert {each["group"] for each in bundles} == {"PodGroup default/train"}


@pytest.mark.parametrize("fails", range(SIZE))
async def test_after_a_member_that_stays_no_further_one_is_evicted(fails: int) -> None:
    """Those that have left keep their places, and get them; those that stay release theirs."""
    done = WriteResult(WriteOutcome.DONE)
    scene = a_scene(*[done] * fails, REFUSED)

    async with scene.running(policy()):
        await scene.run()
        assert len(scene.evictor.evicted) == fails
        assert len(scene.held) == fails
        scene.replaced()
        await settled()
        assert len(scene.evictor.evicted) == fails

    wanted = {"Settled": fails, "Blocked": 1, "Cancelled": SIZE - fails - 1}
    assert scene.ends == {phase: count for phase, count in wanted.items() if count}
    assert scene.held == []


def at_record(scene: Any, number: int, act: Any) -> None:
    """Do something when the record of this number is created."""
    create = scene.records.create

    async def creating(document: Any) -> WriteResult:
        if scene.records.created == number:
            act()
        answer: WriteResult = await create(document)
        return answer

    scene.records.create = creating


@pytest.mark.parametrize("what", ["room", "member", "again", "gone", "policy", "record"])
@pytest.mark.parametrize("number", [1, SIZE - 1])
async def test_no_pod_is_evicted_if_one_cannot_be(what: str, number: int) -> None:
    """Something changes while the moves are announced."""
    scene = a_scene()

    def change() -> None:
        if what == "room":
            taken = set(scene.held)
            free = next(f"r3-{n}" for n in range(SIZE) if f"r3-{n}" not in taken)
            scene.tell(PodAdded(a_pod("big", cpu="1", node=free, status={"phase": "Running"})))
        elif what == "member":  # a late one, which needs the others
            scene.tell(NodeAdded(a_node("r4-0", cpu="2", labels={RACK: "r4"})))
            scene.tell(PodAdded(member(7, "r4-0")))
            group = {"metadata": {"name": "train", "namespace": "default"}, "spec": {"minMember": SIZE + 1}}
            scene.tell(ObjectAdded(convert(PodGroup, group)))
        elif what == "again":  # deleted, and made again under the same name
            for pod in scene.members:
                scene.tell(PodDeleted(pod))
            for n in range(SIZE):
                scene.tell(PodAdded(member(n, f"r{1 + n // 2}-{n % 2}", uid=f"again-{n}")))
        elif what == "gone":
            scene.tell(PodDeleted(scene.members[0]))
        elif what == "policy":
            scene.rebalancers.adopt(policy("DryRun"))
        else:
            key = next(iter(scene.records.documents))
            del scene.records.documents[key]
            scene.keeper.forget(*key.split("/"))
            scene.wing.executor.post(RecordDeleted(key))

    at_record(scene, number, change)

    async with scene.running(policy()):
        await scene.run()
        await scene.clock.advance(PATIENCE_S)

    assert scene.evictor.evicted == []
    assert set(scene.ends) == {"Cancelled"} or (what == "record" and scene.ends["Cancelled"] == number)
    assert scene.held == []


@pytest.mark.parametrize("what", ["gone", "stopped"])
@pytest.mark.parametrize("number", [2, SIZE])
async def test_no_pod_is_evicted_if_something_happens_while_a_move_is_announced(
    what: str, number: int
) -> None:
    """Between the write that announces the move of that number and its response."""
    scene = a_scene()
    write, announced = scene.records.write_status, []

    async def writing(namespace: str, name: str, status: Any, **more: Any) -> WriteResult:
        answer: WriteResult = await write(namespace, name, status, **more)
        if status["phase"] == "Evicting":
            announced.append(name)
            if len(announced) == number:
                if what == "gone":
                    scene.tell(PodDeleted(scene.members[0]))
                else:
                    scene.wing.executor.post(StopPressed("somebody stopped it"))
                await settled()
        return answer

    scene.records.write_status = writing

    async with scene.running(policy()):
        await scene.run()
        await scene.clock.advance(PATIENCE_S)

    assert len(announced) == number
    assert scene.evictor.evicted == []
    assert scene.ends["Cancelled"] == len(scene.records.documents)
    assert scene.held == []


@pytest.mark.parametrize("left", [0, 1, 3])
async def test_after_a_change_of_leaders_no_further_member_is_evicted(left: int) -> None:
    """The new one follows those that have left, with their places; the others stay."""
    scene = a_scene(hangs_at=left)
    async with scene.running(policy()):
        task = asyncio.create_task(scene.run())
        await settled()
        assert len(scene.evictor.evicted) == left
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    later = Straddling(FakeRecords(*scene.records.documents.values()), gone=left)
    async with later.running(policy()):
        await later.clock.advance(5)
        assert later.evictor.evicted == []
        assert len(later.held) == left
        ended = Counter(each["status"]["phase"] for each in later.records.documents.values())
        assert ended == Counter({"Cancelled": SIZE - left, "Evicted": left}) - Counter()


async def test_a_proposed_group_leaves_when_all_of_its_moves_are_approved() -> None:
    """Not before, and then whole."""
    scene = a_scene()

    async with scene.running(policy("Approve")):
        await scene.run()
        keys = list(scene.keeper.known)
        for key in keys[:-1]:
            annotate(scene, "true", key)
        await scene.clock.advance(5)
        before = list(scene.evictor.evicted)
        annotate(scene, "true", keys[-1])
        await scene.clock.advance(5)

    assert before == []
    assert scene.evictor.at_first == ([f"r3-{n}" for n in range(SIZE)], ["Evicting"] * SIZE)
    assert len(scene.evictor.evicted) == SIZE


class StartingOver(Noting):
    """The owner of the group deletes all other pods when one is evicted, as a JobSet does."""

    async def evict(self, pod: Pod) -> WriteResult:
        answer = await super().evict(pod)
        self.scene.tell(*(PodDeleted(each) for each in self.scene.members))
        return answer


def made_again(number: int, node: str, *, phase: str = "Running") -> Pod:
    """A pod of the Job that was made again: of the same name, with another uid."""
    pod = member(number, node, uid=f"new-{number}", phase=phase)
    (owner,) = pod.metadata.owner_references
    owners = (msgspec.structs.replace(owner, uid="another-job"),)
    return msgspec.structs.replace(
        pod, metadata=msgspec.structs.replace(pod.metadata, owner_references=owners)
    )


async def test_a_group_whose_owner_starts_over_costs_one_eviction() -> None:
    """The others are gone already; the place that is held for a Job that is no more is free in the end."""
    evictor = StartingOver()
    scene = evictor.scene = Straddling(evictor=evictor)

    async with scene.running(policy()):
        await scene.run()
        assert evictor.evicted == ["train-0"]
        assert (scene.held, scene.ends) == (["r3-0"], {"Evicted": 1, "Cancelled": SIZE - 1})
        waiting = [made_again(number, "", phase="Pending") for number in range(SIZE)]
        scene.tell(*map(PodAdded, waiting))
        scene.tell(*(PodUpdated(pod, made_again(at, f"r1-{at}")) for at, pod in enumerate(waiting)))
        await scene.clock.advance(PATIENCE_S + 1)

        assert evictor.evicted == ["train-0"]

    assert (scene.held, scene.ends) == ([], {"Failed": 1, "Cancelled": SIZE - 1})
    reasons = {document["status"].get("reason") for document in scene.records.documents.values()}
    assert reasons == {"NoReplacement", "Gone", "NotAll"}
