"""Trials of one node after another on a fork: pods leave and come back, and close() forgets all of it."""

from hypothesis import given
from hypothesis import strategies as st

from engine.test_kept_preemption import PROFILE
from plimsoll.engine.nominator import Nominator
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.testing.builders import a_cluster, a_node, a_pod

#: Cores of the pods on each node, of four.
PODS = {"n0": (1, 2, 1), "n1": (2, 2)}
STEPS = st.lists(
    st.tuples(
        st.sampled_from(sorted(PODS)),
        st.lists(st.tuples(st.sampled_from(["remove", "add", "ask"]), st.integers(0, 2)), max_size=6),
        st.booleans(),
    ),
    max_size=6,
)


@given(STEPS, st.integers(1, 4), st.booleans())
def test_each_node_is_judged_by_the_pods_that_are_there_now(
    story: list[tuple[str, list[tuple[str, int]], bool]], cores: int, is_nominated: bool
) -> None:
    """Also in the second trial of a node; a nominated pod of a higher priority takes one core of n0."""
    placed = [
        a_pod(f"{node}-{at}", node=node, cpu=str(cpu))
        for node, all_cpu in PODS.items()
        for at, cpu in enumerate(all_cpu)
    ]
    cluster, nominator = a_cluster([a_node(name, cpu="4") for name in PODS], placed), Nominator()
    if is_nominated:
        nominator.add(cluster.templates.info(a_pod("ahead", cpu="1", priority=100)), "n0")
    scheduler = ProfileScheduler(PROFILE, cluster, nominator=nominator)
    what_if = scheduler.what_if(cluster.templates.info(a_pod("p", cpu=str(cores), priority=50)))
    for node, steps, is_closed in story:
        trial = what_if.on(cluster.rows[node])
        away: set[int] = set()
        for what, at in steps:
            if at >= len(PODS[node]):
                continue
            pod = cluster.pods[f"uid-default-{node}-{at}"]
            if what == "remove" and at not in away:
                trial.remove(pod)
                away.add(at)
            elif what == "add" and at in away:
                trial.add(pod)
                away.remove(at)
            free = 4 - sum(cpu for at, cpu in enumerate(PODS[node]) if at not in away)
            free -= is_nominated and node == "n0"
            assert trial.status().is_success is (free >= cores)
        trial.close()
        if is_closed:
            trial.close()
    assert {uid: pod.pod.node_name for uid, pod in cluster.pods.items()} == {
        each.metadata.uid: each.node_name for each in placed
    }
