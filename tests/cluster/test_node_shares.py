"""The nodes that a replica binds to: the same for the same names, in any order of their coming."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from plimsoll.cluster.node_shares import NODE_SHARES, NodeShares, share_of
from plimsoll.model.columns.cluster import Cluster
from plimsoll.testing.builders import a_node

NAMES = st.sampled_from([f"n{number}" for number in range(12)])


@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("set"), NAMES),
            st.tuples(st.just("remove"), NAMES),
            st.tuples(st.just("hold"), st.frozensets(st.integers(0, NODE_SHARES - 1))),
        ),
        max_size=20,
    )
)
def test_the_kept_home_is_that_of_the_present_nodes(steps: list[tuple[str, str | frozenset[int]]]) -> None:
    """Nodes come and go and shares change hands; compared with a look at every node."""
    cluster, shares = Cluster(), NodeShares()
    for kind, what in steps:
        if kind == "hold":
            assert isinstance(what, frozenset)
            shares.held = what
        elif kind == "set":
            cluster.set_node(a_node(str(what)))
        elif what in cluster.rows:
            cluster.remove_node(str(what))
        home = shares.home(cluster)

        expected = [share_of(node.name) in shares.held for node in cluster.nodes]
        assert (home is None) is (len(shares.held) in (0, NODE_SHARES))
        assert home is None or home.tolist() == expected


def test_one_process_that_does_all_the_work_makes_no_difference_between_nodes() -> None:
    """It holds every share from the beginning."""
    shares = NodeShares()

    assert shares.home(Cluster()) is None
    assert shares.holds("any")


def test_names_are_spread_over_the_shares() -> None:
    """Within a fifth of the mean, with names as clouds give them; all versions agree on where a name goes."""
    counts = Counter(share_of(f"ip-10-0-{number // 256}-{number % 256}.internal") for number in range(6000))

    assert set(counts) == set(range(NODE_SHARES))
    assert all(800 <= count <= 1200 for count in counts.values())
    assert [share_of(name) for name in ("a", "node-1", "gpu-7")] == [3, 3, 5]
