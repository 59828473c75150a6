"""A group leaves whole or not at all: all places are reserved and announced before a pod is evicted."""

import asyncio
from collections import Counter
from datetime import UTC, datetime
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
    """The owner of the group deletes all pods when so many are evicted, as a JobSet does."""

    def __init__(self, evicted: int, *answers: WriteResult) -> None:
        super().__init__(*answers)
        self.starts_over_at = evicted

    async def evict(self, pod: Pod) -> WriteResult:
        answer = await super().evict(pod)
        if len(self.evicted) == self.starts_over_at:
            self.scene.tell(*(PodDeleted(each) for each in self.scene.members))
        return answer


def starting_over(evicted: int, *answers: WriteResult) -> Any:
    evictor = StartingOver(evicted, *answers)
    evictor.scene = Straddling(evictor=evictor)
    return evictor.scene


def made_again(
    number: int,
    node: str = "",
    *,
    time: int = 1,
    as_: str = "Job/train",
    name: str = "",
    group: str = "train",
) -> Pod:
    """A pod of the Job that was made again: another uid, perhaps other names."""
    pod = member(number, node, uid=f"new-{time}-{number}", phase="Running" if node else "Pending")
    kind, _, title = as_.partition("/")
    (owner,) = pod.metadata.owner_references
    owners = (msgspec.structs.replace(owner, kind=kind, name=title, uid=f"{as_}-{time}"),)
    metadata = msgspec.structs.replace(
        pod.metadata,
        name=name or pod.name,
        labels={"plimsoll.dev/pod-group": group},
        owner_references=owners,
        creation_timestamp=datetime(2030, 1, 1, tzinfo=UTC),
    )
    return msgspec.structs.replace(pod, metadata=metadata)


def nodes_of(scene: Straddling, pods: list[Pod]) -> list[str]:
    """Where room is held for each pod."""
    return [
        next((node for node, held in scene.nominator.by_node.items() if pod.uid in held), "") for pod in pods
    ]


def reasons(scene: Straddling) -> Counter[str]:
    """What the records give as reasons."""
    return Counter(document["status"].get("reason") for document in scene.records.documents.values())


RACK_3 = [f"r3-{n}" for n in range(SIZE)]


@pytest.mark.parametrize(
    "again",
    [
        pytest.param({}, id="the-same-names"),
        pytest.param({"name": "train-{n}-x7k2p"}, id="other-pods"),
        pytest.param({"name": "train-{n}-x7k2p", "group": "train-x7k2p"}, id="another-pod-group"),
        pytest.param({"as_": "Job/train-2", "name": "train-2-{n}"}, id="another-job"),
        pytest.param({"as_": "Worker/w-{n}", "name": "w-{n}"}, id="a-controller-each"),
    ],
)
@pytest.mark.parametrize("evicted", [1, 2, SIZE])
async def test_a_group_whose_owner_starts_over_takes_the_places_that_are_held(
    evicted: int, again: dict[str, str]
) -> None:
    """No further pod is evicted, no place is lost, and each record says how its pod left."""
    scene = starting_over(evicted)
    scene.tell(PodAdded(a_pod("other", owner="Job/other", cpu="2", uid="other")))

    def renewed(number: int, node: str = "") -> Pod:
        more: dict[str, Any] = {key: each.format(n=number) for key, each in again.items()}
        return made_again(number, node, **more)

    async with scene.running(policy()):
        await scene.run()
        assert len(scene.evictor.evicted) == evicted
        assert (scene.held, scene.ends) == (RACK_3, {"Evicted": SIZE})
        assert reasons(scene) == Counter({"Accepted": evicted, "LeftWithGroup": SIZE - evicted}) - Counter()
        waiting = [renewed(number) for number in reversed(range(SIZE))]
        scene.tell(*map(PodAdded, waiting), PodAdded(a_pod("late", owner="Job/other", cpu="2")))
        await settled()
        nodes = nodes_of(scene, waiting)
        assert sorted(nodes) == RACK_3
        scene.tell(
            *(
                PodUpdated(pod, renewed(SIZE - 1 - at, node))
                for at, (pod, node) in enumerate(zip(waiting, nodes, strict=True))
            )
        )
        await settled()
        assert (scene.held, scene.ends) == ([], {"Settled": SIZE})
        assert len(scene.evictor.evicted) == evicted
    of_number = {document["spec"]["pod"]["name"]: document for document in scene.records.documents.values()}
    for number in range(SIZE):
        document = of_number[f"train-{number}"]
        assert document["status"]["replacement"]["uid"] == f"new-1-{number}"


async def test_a_group_that_starts_over_twice_keeps_its_places() -> None:
    """Its pods are deleted before they run; those of the third Job get the places."""
    scene = starting_over(1)

    async with scene.running(policy()):
        await scene.run()
        for time in (1, 2):
            waiting = [made_again(number, time=time) for number in range(SIZE)]
            scene.tell(*map(PodAdded, waiting))
            await settled()
            assert sorted(nodes_of(scene, waiting)) == RACK_3
            scene.tell(*map(PodDeleted, waiting))
            await settled()
            assert (scene.held, scene.ends) == (RACK_3, {"Evicted": SIZE})
        waiting = [made_again(number, time=3) for number in range(SIZE)]
        scene.tell(*map(PodAdded, waiting))
        nodes = nodes_of(scene, waiting)
        scene.tell(*(PodUpdated(pod, made_again(n, nodes[n], time=3)) for n, pod in enumerate(waiting)))
        await settled()

    assert (scene.held, scene.ends, scene.evictor.evicted) == ([], {"Settled": SIZE}, ["train-0"])


async def test_a_group_that_is_not_made_again_gives_its_places_back() -> None:
    """Somebody has deleted its owner, too."""
    scene = starting_over(1)

    async with scene.running(policy()):
        await scene.run()
        assert scene.held == RACK_3
        await scene.clock.advance(PATIENCE_S + 1)

    assert (scene.held, scene.ends) == ([], {"Failed": SIZE})
    assert reasons(scene) == {"NoReplacement": SIZE}


async def test_a_refused_eviction_of_a_pod_that_stays_ends_the_move_as_before() -> None:
    """Only members that have left are followed; one that a budget protects runs on."""
    scene = a_scene(WriteResult(WriteOutcome.DONE), WriteResult(WriteOutcome.GONE), REFUSED)

    async with scene.running(policy()):
        await scene.run()

    assert scene.ends == {"Evicted": 2, "Blocked": 1, "Cancelled": SIZE - 3}
    assert reasons(scene)["LeftWithGroup"] == 1


@pytest.mark.parametrize("made", range(0, SIZE + 1, 2))
@pytest.mark.parametrize("again", [{}, {"as_": "Worker/w-{n}"}], ids=["namesake", "renamed"])
async def test_a_new_leader_gives_the_places_to_a_group_that_has_started_over(
    made: int, again: dict[str, str]
) -> None:
    """So many pods were made again before it leads, the others come later."""
    scene = starting_over(2)
    async with scene.running(policy()):
        await scene.run()

    def renewed(number: int, node: str = "") -> Pod:
        more: dict[str, Any] = {key: each.format(n=number) for key, each in again.items()}
        return made_again(number, node, **more)

    later = Straddling(FakeRecords(*scene.records.documents.values()), gone=SIZE)
    waiting = [renewed(number) for number in range(SIZE)]
    later.tell(*map(PodAdded, waiting[:made]))
    async with later.running(policy()):
        await later.clock.advance(5)
        later.tell(*map(PodAdded, waiting[made:]))
        nodes = nodes_of(later, waiting)
        assert sorted(nodes) == RACK_3
        later.tell(*(PodUpdated(pod, renewed(n, nodes[n])) for n, pod in enumerate(waiting)))
        await later.clock.advance(5)

    ends = Counter(document["status"]["phase"] for document in later.records.documents.values())
    assert (ends, later.held, later.evictor.evicted) == ({"Settled": SIZE}, [], [])
