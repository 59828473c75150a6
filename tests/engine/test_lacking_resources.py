"""Compares the resources that a cluster lacks for a gang with a sum node by node."""

from hypothesis import given
from hypothesis import strategies as st

from plimsoll.cluster.pod_groups import lacking_resources
from plimsoll.testing.builders import a_cluster, a_node, a_pod

#: A node: its cores, and the cores of its pods with whether each is of the gang.
nodes = st.lists(
    st.tuples(st.integers(0, 4), st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=3)),
    min_size=1,
    max_size=4,
)


@given(given_nodes=nodes, wanted=st.integers(0, 12))
def test_no_node_takes_room_from_another(
    given_nodes: list[tuple[int, list[tuple[int, bool]]]], wanted: int
) -> None:
    """What one has promised beyond its room is missing there, and nowhere else."""
    pods, own, free = [], [], 0
    for at, (cores, some) in enumerate(given_nodes):
        free += max(0, cores - sum(each for each, _ in some))
        for number, (each, is_ours) in enumerate(some):
            pods.append(a_pod(f"p{at}-{number}", node=f"n{at}", cpu=str(each)))
            if is_ours:
                own.append((pods[-1].uid, each))
    cluster = a_cluster([a_node(f"n{at}", cpu=str(cores)) for at, (cores, _) in enumerate(given_nodes)], pods)

    lacking = lacking_resources(cluster, {"cpu": wanted * 1000}, [cluster.pods[uid] for uid, _ in own])

    missing = wanted - free - sum(each for _, each in own)
    assert lacking == ({"cpu": missing * 1000} if missing > 0 else {})
