"""Rows of pods that are on nodes are applied as a whole, and leave what their pods leave one by one."""

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from cluster.invariants import check_book
from plimsoll.cluster.cache import Cache
from plimsoll.cluster.ingestion import FEWEST, Ingestion, Mirror, OfTypes, PlacedPodsSubscriber
from plimsoll.cluster.pending_pods import PendingPods
from plimsoll.cluster.watch_events import NodeAdded, PodAdded, PodDeleted
from plimsoll.framework.descheduling.pod_indexes import OwnerCounts
from plimsoll.model.columns.queue_usage import QUEUE_LABEL, WaitingDemand
from plimsoll.model.columns.term_counts import TermCounts
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.pod_group import GROUP_LABEL
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.rebalancing.moves.sightings import ReplacementSightings
from plimsoll.scheduling.orphaned_pods import OrphanedPods
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.columns import validate
from plimsoll.testing.fakes import RememberingObserver
from plimsoll.timing.signal import Signal
from rebalancing.scene import Scene
from scheduling.gangs.gang_scene import GangScene

NODES = ("n0", "n1", "n2", "unknown")
ENDED: Any = [{"phase": "Succeeded"}, {"phase": "Failed"}]
RUNNING: Any = [{}, {}, {}, {"nominatedNodeName": "n0"}]
GPU = "example.com/device"
ANTI = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
        ]
    }
}


@st.composite
def pods(draw: Callable[..., Any], node: str, statuses: Any = (*RUNNING, *ENDED)) -> Pod:
    """A pod among few names: one may come again as another, or on another node."""
    name = f"p{draw(st.integers(0, 60))}"
    return a_pod(
        name,
        uid=f"{name}-{draw(st.sampled_from([0, 0, 0, 1]))}",
        node=node,
        cpu=draw(st.sampled_from([None, "100m", "2", str(2**62), "no quantity"])),
        requests=draw(st.sampled_from([{}, {}, {GPU: 1}, {"example.com/other": "2"}])),
        labels=draw(st.sampled_from([{}, {"app": "web"}, {GROUP_LABEL: "gang"}, {QUEUE_LABEL: "a"}])),
        owner=draw(st.sampled_from(["", "ReplicaSet/web", "ReplicaSet/api"])),
        affinity=draw(st.sampled_from([None, None, ANTI])),
        schedulerName=draw(st.sampled_from(["s", "other"])),
        schedulingGates=draw(st.sampled_from([[], [], [{"name": "gate"}]])),
        status=draw(st.sampled_from(statuses)),
    )


placed = st.sampled_from(NODES).flatmap(pods)
running = st.sampled_from(NODES).flatmap(lambda node: pods(node, RUNNING))
some = st.lists(running, min_size=FEWEST, max_size=2 * FEWEST, unique_by=lambda pod: pod.name)
rows = some.map(lambda pods: [PodAdded(pod) for pod in pods])
others = st.one_of(
    st.sampled_from(NODES[:3]).map(lambda name: [NodeAdded(a_node(name, cpu="8"))]),
    pods("").map(lambda pod: [PodAdded(pod)]),
    placed.map(lambda pod: [PodDeleted(pod)]),
)


def of_cluster(cluster: Any) -> dict[str, Any]:
    """All that the columns hold."""
    validate(cluster)
    count = len(cluster)
    changed = cluster.changed_since(0)
    return {
        "nodes": [node.name for node in cluster.nodes],
        "resources": cluster.resources,
        "requested": cluster.requested[:count].tolist(),
        "nonzero": cluster.nonzero_requested[:count].tolist(),
        "clocks": (cluster.tick, cluster.epoch, cluster.node_tick, cluster.is_large),
        "changed": None if changed is None else changed.tolist(),
        "pods": [(uid, info.pod, info.requests) for uid, info in cluster.pods.items()],
        "on": [[info.uid for info in cluster.pods_on(row)] for row in range(count)],
        "rows": {uid: cluster.row_of_pod(uid) for uid in cluster.pods},
        "strays": {name: list(aside) for name, aside in cluster.strays.items()},
        "owners": cluster.index(OwnerCounts).counts,
        "demand": cluster.index(WaitingDemand).sums,
        "terms": {key: counts.column.tolist() for key, counts in cluster.index(TermCounts)._counted.items()},
    }


async def scheduling(batches: list[list[Any]]) -> Any:
    """What the scheduling wing holds after these events."""
    shares = {"FairShare": {"queues": [{"name": "a"}]}}
    scene = GangScene(args=shares, enabled=("FairShare",))
    orphans = OrphanedPods(scene.recorder, scene.clock, scene.observer, Signal())
    ingestion = scene.wing.ingestion([orphans], scene.observer)
    for batch in batches:
        ingestion.apply(batch)
    check_book(scene.book)
    queue = {name: place.name for name, place in ((each.pod.uid, each.pod) for each in scene.queue)}
    return (
        of_cluster(scene.cache.cluster),
        list(scene.cache.waiting),
        (queue, scene.queue.depths(), scene.queue.listens),
        {group.key: (list(group.members), group.present) for group in scene.groups},
        sorted(scene.reports._due),
        (list(orphans.pending), sorted(orphans.seen)),
        sorted(scene.observer.skipped),
        scene.observer.failures,
    )


async def rebalancing(batches: list[list[Any]]) -> Any:
    """What the rebalancing wing holds after these events."""
    scene = Scene()
    for batch in batches:
        scene.tell(*batch)
    sightings = next(
        each for each in scene.wing.executor._sightings if isinstance(each, ReplacementSightings)
    )
    return (
        of_cluster(scene.cache.cluster),
        {each: dict(pods) for each, pods in sightings._siblings.items()},
        next(each.waiting() for each in scene.wing.subscribers if isinstance(each, PendingPods)),
        scene.observer.failures,
    )


#: Pods on one node.
ROW = [a_pod(f"p{number}", node="n0") for number in range(FEWEST)]
#: The last of them is a member of a gang.
WITH_A_MEMBER = [*ROW[1:], a_pod("p0", node="n0", labels={GROUP_LABEL: "gang"})]
#: Pods that have ended on one node.
ENDED_ROW = [a_pod(f"p{number}", node="n0", status=ENDED[number % 2]) for number in range(FEWEST)]


@example([[NodeAdded(a_node("n0"))], [PodAdded(each) for each in ENDED_ROW]])
@example([[PodAdded(each) for each in WITH_A_MEMBER]])
@example([[PodAdded(a_pod("p3", schedulerName="s"))], [PodAdded(each) for each in ROW]])
@settings(max_examples=30)
@given(st.lists(st.one_of(rows, others), max_size=8))
async def test_a_row_of_pods_is_what_its_pods_are(batches: list[list[Any]]) -> None:
    """Columns, caches, clocks and their log, the queue, the gangs and what both wings remember."""
    events = [event for batch in batches for event in batch]
    whole, one_by_one = [events], [[event] for event in events]

    assert await scheduling(whole) == await scheduling(one_by_one)
    assert await rebalancing(whole) == await rebalancing(one_by_one)


class Picky(PlacedPodsSubscriber):
    """Cannot take one pod."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def observe(self, event: Any) -> None:
        """Keep the name."""
        if event.pod.name == "p3":
            raise ValueError("p3")
        self.seen.append(event.pod.name)

    def observe_placed(self, pods: Sequence[Pod]) -> None:
        """Refuse them all for one."""
        raise ValueError(pods)


def test_one_pod_that_breaks_a_subscriber_takes_no_other_along() -> None:
    """The row is passed on once more, pod by pod; subscribers of other types hear nothing of it."""
    observer, picky, deaf = RememberingObserver(), Picky(), Picky()
    ingestion = Ingestion((picky, OfTypes((PodDeleted,), (deaf,))), observer)

    ingestion.apply([PodAdded(each) for each in ROW])

    assert picky.seen == [f"p{number}" for number in range(FEWEST) if number != 3]
    assert [where for where, _ in observer.failures] == ["observing default/p3"]
    assert deaf.seen == []


def test_one_pod_that_cannot_be_read_takes_no_other_of_its_row_along() -> None:
    """Those before and behind it are placed, and no longer wait."""
    observer, cache = RememberingObserver(), Cache()
    mirror = Mirror(cache, observer)
    read = cache.info

    def info(pod: Pod) -> PodInfo:
        if pod.name == "p3":
            raise ValueError("p3")
        return read(pod)

    cache.info = info  # type: ignore[method-assign] # for this test
    mirror.observe_placed(ROW)

    assert {each.name for each in cache.cluster.pods.values()} == {each.name for each in ROW} - {"p3"}
    assert [each.name for each in mirror.arrived] == [each.name for each in ROW if each.name != "p3"]
