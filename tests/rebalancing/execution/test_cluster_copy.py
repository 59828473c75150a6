"""ClusterCopy, against forks of the cluster that take up every claim."""

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planning.test_kept_findings import AROUND, STRATEGIES, a_policy, change, counted
from plimsoll.framework import PodInfo
from plimsoll.load.load_book import LoadBook
from plimsoll.load.readings import LoadReading, LoadReadings
from plimsoll.model.columns.cluster import Cluster
from plimsoll.planning.planners import ask_again, make_plan
from plimsoll.rebalancing.execution.cluster_copy import ClusterCopy, ClusterImage
from plimsoll.testing.builders import a_pod
from plimsoll.testing.columns import validate_pods
from plimsoll.usage.load_keeper import LoadKeeper
from trials.starts import some_start

Claims = dict[str, dict[str, PodInfo]]


def some_claims(cluster: Cluster, chance: random.Random) -> Claims:
    """Room for pods that come, on nodes that may be unknown; one of them may be there already."""
    claims: Claims = {}
    for number in range(chance.randrange(3)):
        pod = cluster.templates.info(a_pod(f"q{chance.randrange(30)}" if number else "claim", cpu="1"))
        claims.setdefault(chance.choice([*sorted(cluster.rows), "late"]), {})[pod.uid] = pod
    return claims


def claimed(cluster: Cluster, claims: Claims) -> Cluster:
    """A fork with every claim taken up."""
    fork = cluster.fork()
    for node, pods in claims.items():
        for uid, pod in pods.items():
            if uid not in fork.pods:
                fork.place(pod, node)
    return fork


def held(cluster: Cluster) -> Any:
    """Which pods, by identity, are where, and what the columns count of them."""
    on = {node.name: {id(pod) for pod in cluster.pods_on(row)} for row, node in enumerate(cluster.nodes)}
    strays = {node: {id(pod) for pod in pods.values()} for node, pods in cluster.strays.items() if pods}
    amounts = {
        node.name: dict(zip(cluster.resources, cluster.requested[row].tolist(), strict=True))
        for row, node in enumerate(cluster.nodes)
    }
    names = {name for each in amounts.values() for name, amount in each.items() if amount}
    used = {node: {name: each.get(name, 0) for name in names} for node, each in amounts.items()}
    return on, strays, used, {node.name: id(node) for node in cluster.nodes}, counted(cluster)


def read(keeper: LoadKeeper, now: float, chance: random.Random) -> None:
    """Half of the pods and nodes are measured."""
    pods = [pod.key for pod, _ in keeper.cluster.placed() if chance.random() < 0.5]
    nodes = [node.name for node in keeper.cluster.nodes if chance.random() < 0.5]
    found = (
        LoadReadings.of(
            LoadReading(name, chance.randrange(10**9), chance.randrange(10**9), now) for name in each
        )
        for each in (nodes, pods)
    )
    keeper.observe(now, *found)


def loads(cluster: Cluster) -> Any:
    """What the load book says of each node and pod."""
    book = cluster.index(LoadBook)
    nodes = {
        node.name: (book.load_on(row), book.peak_on(row), book.state(row))
        for row, node in enumerate(cluster.nodes)
    }
    return nodes, {uid: book.share(uid) for uid in cluster.pods}


@given(st.integers(0, 10_000), st.booleans(), st.lists(st.integers(0, 6), max_size=5))
@settings(max_examples=40, deadline=None)
def test_a_copy_becomes_what_the_image_shows(seed: int, is_fork: bool, steps: list[int]) -> None:
    """Whatever happened since the image before, and whatever happens after this one was taken."""
    chance = random.Random(seed)
    cluster = some_start(seed)
    copy = ClusterCopy(cluster.fork() if is_fork else Cluster(cluster.templates))
    keeper = LoadKeeper(cluster)
    claims: Claims = {}
    for turn, changes in enumerate(steps):
        for node, pods in claims.items():  # some of the pods that were expected have come
            for pod in pods.values():
                if chance.random() < 0.5 and node in cluster.rows and pod.uid not in cluster.pods:
                    cluster.place(pod, node)
        for _ in range(changes):
            change(cluster, chance)
        read(keeper, 60.0 * turn, chance)
        claims = some_claims(cluster, chance)
        image, expected = ClusterImage.of(cluster, claims), claimed(cluster, claims)
        for _ in range(changes):
            change(cluster, chance)
        copy.bring_up(image)

        assert held(copy.cluster) == held(expected)
        assert loads(copy.cluster) == loads(expected)
        validate_pods(copy.cluster)


def test_a_move_is_judged_on_a_copy_as_on_the_whole_cluster() -> None:
    """The same move or the same refusal, for arbitrary clusters and events since the plan."""
    policy, verdicts = a_policy(*STRATEGIES, total=6), set()
    for seed in range(8):
        chance = random.Random(seed)
        cluster = some_start(seed)
        copy = ClusterCopy(cluster.fork())
        plan = make_plan(policy, cluster.fork(), AROUND)
        for _ in range(3):
            for _ in range(3):
                change(cluster, chance)
            claims = some_claims(cluster, chance)
            copy.bring_up(ClusterImage.of(cluster, claims))
            for move in plan.moves:
                apart = ask_again(move, policy, copy.cluster, AROUND)

                assert apart == ask_again(move, policy, claimed(cluster, claims), AROUND)

                verdicts.add(type(apart))
    assert len(verdicts) == 2


@pytest.mark.parametrize(
    "what", ["nothing", "pod", "claim", "status", "object", "budget", "node", "elsewhere"]
)
def test_an_image_stands_until_something_happens_at_the_nodes(what: str) -> None:
    """A pod more, one in another state, a claim, another object or budget, the node itself; not elsewhere."""
    claims: Claims = {}
    cluster = some_start(3)
    here, there, *_ = sorted(cluster.rows)
    pod = cluster.templates.info(a_pod("new"))
    cluster.place(pod, here)
    image = ClusterImage.of(cluster, claims)
    match what:
        case "pod":
            cluster.place(cluster.templates.info(a_pod("newer")), here)
        case "claim":
            claims[here] = {"uid": pod}
        case "status":
            cluster.place(cluster.templates.info(a_pod("new", status={"phase": "Failed"})), here)
        case "object":
            cluster.objects.version += 1
        case "budget":
            cluster.objects.budget_version += 1
        case "node":
            cluster.remove_node(here)
        case "elsewhere":
            cluster.place(cluster.templates.info(a_pod("newer")), there)
        case _:
            pass

    assert image.stands_at({here}, cluster, claims) is (what in ("nothing", "elsewhere"))
