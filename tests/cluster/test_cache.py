"""Assumed, confirmed, forgotten: a place is counted from the decision on, and freed exactly once."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from cluster.invariants import check_cache
from plimsoll.cluster.cache import Cache
from plimsoll.testing.builders import a_node, a_pod


def a_cache(*nodes: str) -> Cache:
    """A cache with nodes."""
    cache = Cache()
    for name in nodes:
        cache.set_node(a_node(name))
    return cache


def requested(cache: Cache, node: str) -> int:
    """Milli-CPU that the pods of a node take."""
    return int(cache.cluster.requested[cache.cluster.rows[node], 0])


def test_an_assumed_pod_counts_in_full() -> None:
    """The next decision sees the place as taken, before the API server has heard of it."""
    cache = a_cache("n1")

    cache.assume(cache.info(a_pod(cpu="1")), "n1")

    assert requested(cache, "n1") == 1000


def test_a_pod_is_never_assumed_twice() -> None:
    """Binding a placed pod again could bind it twice."""
    cache = a_cache("n1", "n2")
    pod = cache.info(a_pod(cpu="1"))
    cache.assume(pod, "n1")

    with pytest.raises(ValueError, match="already on n1"):
        cache.assume(pod, "n2")


def test_the_watch_moves_an_assumed_pod_to_where_it_was_bound() -> None:
    """Somebody else bound it elsewhere: its place here is free again."""
    cache = a_cache("n1", "n2")
    cache.assume(cache.info(a_pod(cpu="1")), "n1")

    cache.set_placed(cache.info(a_pod(cpu="1", node="n2")), "n2")

    assert (requested(cache, "n1"), requested(cache, "n2")) == (0, 1000)


def test_forgetting_spares_a_confirmed_pod() -> None:
    """The binding's answer was lost, but the watch has shown the pod on its node."""
    cache = a_cache("n1")
    pod = cache.info(a_pod(cpu="1"))
    cache.assume(pod, "n1")
    cache.set_placed(pod, "n1")

    cache.forget(pod.uid)

    assert requested(cache, "n1") == 1000


PODS = st.sampled_from(["a", "b", "c"])
NODES = st.sampled_from(["n1", "n2", "n3"])


class CacheMachine(RuleBasedStateMachine):
    """Any order of decisions and watch events keeps the columns equal to the objects."""

    def __init__(self) -> None:
        super().__init__()
        self.cache = a_cache("n1", "n2")

    @rule(pod=PODS, node=NODES, cpu=st.integers(0, 3))
    def placed(self, pod: str, node: str, cpu: int) -> None:
        """The watch shows a pod on a node."""
        self.cache.set_placed(self.cache.info(a_pod(pod, cpu=cpu, node=node)), node)

    @rule(pod=PODS, node=NODES)
    def assumed(self, pod: str, node: str) -> None:
        """The loop decides."""
        info = self.cache.info(a_pod(pod, cpu=1))
        if not self.cache.node_of(info.uid):
            self.cache.assume(info, node)

    @rule(pod=PODS)
    def forgotten(self, pod: str) -> None:
        """A binding fails."""
        self.cache.forget(f"uid-default-{pod}")

    @rule(pod=PODS)
    def gone(self, pod: str) -> None:
        """The watch tells that a pod is gone."""
        self.cache.remove_pod(f"uid-default-{pod}")

    @rule(node=NODES)
    def node_added(self, node: str) -> None:
        """A node comes."""
        self.cache.set_node(a_node(node))

    @rule(node=NODES)
    def node_removed(self, node: str) -> None:
        """A node goes, its pods stay known."""
        self.cache.remove_node(node)

    @invariant()
    def consistent(self) -> None:
        """Columns and books agree."""
        check_cache(self.cache)


TestCacheMachine = CacheMachine.TestCase


@pytest.mark.parametrize(("before", "is_new"), [("", True), ("n1", False), ("n2", True)])
def test_a_placed_pod_is_new_where_it_was_not_counted(before: str, is_new: bool) -> None:
    """Also one that was assumed there."""
    for assumes in (False, True):
        cache = Cache()
        for name in ("n1", "n2"):
            cache.set_node(a_node(name))
        pod = cache.info(a_pod(cpu="1", node="n1"))
        if before:
            (cache.assume if assumes else cache.set_placed)(pod, before)

        assert cache.set_placed(pod, "n1") is is_new
        assert cache.set_placed(pod, "n1") is False
