"""ConsolidateNodes empties several nodes in one cycle, and fills none of them again."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from planning.rounds import UNLIMITED, a_policy
from planning.test_rounds import AROUND, a_replica
from plimsoll.planning.planners import proven_plan
from plimsoll.testing.builders import a_cluster, a_node

#: By node, its cores, and the quarters of a core that its pods request.
loads = st.lists(
    st.tuples(st.sampled_from((1, 2, 2)), st.lists(st.integers(1, 4), min_size=1, max_size=2)),
    min_size=2,
    max_size=4,
)


@settings(max_examples=25)
@given(loads=loads)
@example(loads=[(1, [1]), (2, [3]), (2, [6])])  # what the second gives up fits nowhere but on the first
def test_no_pod_goes_to_a_node_that_the_cycle_has_emptied(loads: list[tuple[int, list[int]]]) -> None:
    """All pods of a source leave, and no source is a target, though it has the most room of all then."""
    cluster = a_cluster(
        [a_node(f"n{at}", cpu=str(cores)) for at, (cores, _) in enumerate(loads)],
        [
            a_replica(f"p{at}-{k}", f"n{at}", owner=f"ReplicaSet/r{at}-{k}", cpu=f"{250 * quarters}m")
            for at, (_, pods) in enumerate(loads)
            for k, quarters in enumerate(pods)
        ],
    )
    policy = a_policy(
        ("ConsolidateNodes", {"nodes": 4, "thresholds": {"cpu": 60}, "headroomPercent": 0}),
        limits=UNLIMITED,
        evictor={"minReplicas": 1},
    )

    moves = proven_plan(policy, cluster, AROUND).moves

    moved = {move.pod.name for move in moves}
    sources = {move.source for move in moves}
    assert not sources & {move.target for move in moves}
    assert all(
        f"p{at}-{k}" in moved
        for at, (_, pods) in enumerate(loads)
        if f"n{at}" in sources
        for k in range(len(pods))
    )
