"""RemoveDuplicates, against the cases of upstream's own tests."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError

from plimsoll.framework.descheduling.proposals import Candidate, Verdict
from plimsoll.model.kinds.pod import Pod
from plimsoll.strategies.remove_duplicates import RemoveDuplicates
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.strategy_conformance import StrategyConformance
from strategies.builders import a_context, a_strategy, evicted, pods_on


def placed(counts: tuple[int, ...], **kwargs: Any) -> list[Pod]:
    return [pod for number, count in enumerate(counts) for pod in pods_on(f"n{number}", count, **kwargs)]


@pytest.mark.parametrize(
    ("counts", "only", "expected"),
    [
        # 9 pods over 3 nodes: upper ceil(9/3) = 3, so 5 - 3 = 2 leave
        pytest.param((5, 3, 1), None, 2, id="three-nodes"),
        # 8 pods over 2 nodes: upper 4, so 5 - 4 = 1 leaves
        pytest.param((5, 3, 1), {"n0", "n1"}, 1, id="two-of-three-processed"),
        pytest.param((2, 0, 0), None, 1, id="one-twin"),
        pytest.param((1, 0, 0), None, 0, id="no-twin"),
        pytest.param((3, 0), None, 1, id="three-on-one-of-two"),
    ],
)
def test_pods_past_an_even_share_leave(counts: tuple[int, ...], only: set[str] | None, expected: int) -> None:
    """As many leave as are above the rounded-up share of the nodes that could run them."""
    context = a_context([a_node(f"n{n}") for n in range(len(counts))], placed(counts), only=only)

    assert len(evicted(a_strategy(RemoveDuplicates), context)) == expected


def test_the_first_pod_of_a_node_stays() -> None:
    """Victims are taken from the end; names decide, not the order of arrival."""
    pods = list(reversed(pods_on("n0", 4)))
    context = a_context([a_node("n0"), a_node("n1")], pods)

    assert evicted(a_strategy(RemoveDuplicates), context) == ["n0-2", "n0-3"]


def test_excluded_owner_kinds_are_left_alone() -> None:
    """No pod of such an owner is touched."""
    context = a_context([a_node("n0"), a_node("n1")], pods_on("n0", 3))

    assert evicted(a_strategy(RemoveDuplicates, excludeOwnerKinds=["ReplicaSet"]), context) == []


def test_namespaces_narrow_it() -> None:
    """Only those that are looked at."""
    for namespaces, count in (({"include": ["default"]}, 1), ({"exclude": ["default"]}, 0)):
        context = a_context([a_node("n0"), a_node("n1")], pods_on("n0", 3))

        assert len(evicted(a_strategy(RemoveDuplicates, namespaces=namespaces), context)) == count


def test_both_lists_of_namespaces_are_refused() -> None:
    """With upstream's words."""
    with pytest.raises(ValidationError, match="only one of Include/Exclude namespaces can be set"):
        a_strategy(RemoveDuplicates, namespaces={"include": ["a"], "exclude": ["b"]})


def test_two_owners_count_twice() -> None:
    """Upstream's oddity: (5,3,1) with two owners each is four attempts, two pods."""
    owners = [{"kind": "ReplicaSet", "name": name, "uid": name} for name in ("a", "b")]
    pods = [
        a_pod(f"n{node}-{number}", node=f"n{node}", metadata={"ownerReferences": owners})
        for node, count in enumerate((5, 3, 1))
        for number in range(count)
    ]
    context = a_context([a_node(f"n{n}") for n in range(3)], pods)

    names = evicted(a_strategy(RemoveDuplicates), context)

    assert (len(names), len(set(names))) == (4, 2)


def test_other_images_make_other_pods() -> None:
    """Pods of one owner with different images are no duplicates."""
    pods = [
        a_pod(f"p{n}", node="n0", owner="ReplicaSet/web", containers=[{"name": "main", "image": f"app:{n}"}])
        for n in range(3)
    ]

    assert evicted(a_strategy(RemoveDuplicates), a_context([a_node("n0"), a_node("n1")], pods)) == []


def test_nodes_that_the_pods_cannot_run_on_do_not_share() -> None:
    """Tainted nodes raise no hope: (5,3,1) and three tainted ones is (5,3,1) on three."""
    nodes = [a_node(f"n{n}", taints=["t:NoSchedule"] if n > 2 else ()) for n in range(6)]

    assert len(evicted(a_strategy(RemoveDuplicates), a_context(nodes, placed((5, 3, 1, 0, 0, 0))))) == 2


def test_wishes_that_cannot_be_read_match_upstream_only() -> None:
    """Upstream takes the error for a match, and evicts for nodes that no pod can go to."""
    term = {"matchExpressions": [{"key": "a", "operator": "Bogus"}]}
    affinity = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    }
    nodes = [a_node("n0"), a_node("n1")]

    for exact, count in ((True, 1), (False, 0)):
        context = a_context(nodes, pods_on("n0", 3, affinity=affinity), exact=exact)
        assert len(evicted(a_strategy(RemoveDuplicates), context)) == count


def test_one_possible_node_moves_nothing() -> None:
    """With no node matching the selector, or one, there is nowhere to go."""
    nodes = [a_node(f"n{n}", labels={"disk": "ssd"} if n == 0 else {}) for n in range(3)]
    pods = placed((5, 3, 1), node_selector={"disk": "ssd"})

    assert evicted(a_strategy(RemoveDuplicates), a_context(nodes, pods)) == []


def test_a_closed_node_does_not_end_the_others() -> None:
    """The node limit gives up on that node only."""
    context = a_context([a_node(f"n{n}") for n in range(4)], placed((5, 5, 0, 0)))

    names = evicted(a_strategy(RemoveDuplicates), context, per_node=1)

    assert [name[:2] for name in names] == ["n0", "n1"]


COST = "controller.kubernetes.io/pod-deletion-cost"


def test_the_cheapest_leave_here() -> None:
    """Upstream keeps the first in order of names, whatever it costs to move it."""
    pods = [
        *pods_on("n0", 1, prefix="a-", annotations={COST: "-1"}),
        *pods_on("n0", 1, prefix="b-", annotations={COST: "5"}),
        *pods_on("n0", 1, prefix="c-"),
        *pods_on("n0", 1, prefix="d-", annotations={COST: "9"}),
    ]
    nodes = [a_node("n0"), a_node("n1")]

    assert evicted(a_strategy(RemoveDuplicates), a_context(nodes, pods)) == ["c-n0-0", "d-n0-0"]
    here = evicted(a_strategy(RemoveDuplicates), a_context(nodes, pods, exact=False))
    assert here == ["c-n0-0", "a-n0-0"]


def test_destinations_count_the_moves_before() -> None:
    """Of four pods two may be on each node: n1 takes the first that leaves, and then no more with another."""
    context = a_context([a_node("n0"), a_node("n1")], pods_on("n0", 4), exact=False)
    candidates = a_strategy(RemoveDuplicates).candidates(context)
    first = next(candidates)
    assert isinstance(first, Candidate)
    assert [first.destinations.admits(name) for name in ("n0", "n1")] == [False, True]

    context.cluster.displace(first.pod.uid)
    for pod in (first.pod.pod, *pods_on("n1", 1, prefix="new-")):
        context.cluster.place(context.cluster.templates.info(pod), "n1")
    second = candidates.send(Verdict.ACCEPTED)

    assert isinstance(second, Candidate)
    assert not second.destinations.admits("n1")


class TestConformance(StrategyConformance):
    """The laws every strategy obeys."""

    strategy = a_strategy(RemoveDuplicates)


def test_owners_that_share_pods_are_looked_at_together() -> None:
    """Owner b's duplicates are those from before any of a's pods, some of which are b's as well, went."""
    shared = {
        "ownerReferences": [
            {"kind": "Job", "name": name, "uid": name, "apiVersion": "batch/v1"} for name in "ab"
        ]
    }
    pods = [a_pod(f"p{number}", node="n0", metadata=shared) for number in range(4)]
    context = a_context([a_node("n0"), a_node("n1")], pods, exact=False)
    proposed: list[str] = []
    candidates = a_strategy(RemoveDuplicates).candidates(context)
    candidate = next(candidates, None)
    while isinstance(candidate, Candidate):
        proposed.append(candidate.pod.name)
        context.cluster.displace(candidate.pod.uid)
        try:
            candidate = candidates.send(Verdict.ACCEPTED)
        except StopIteration:
            break

    assert len(proposed) == 4
    assert proposed[:2] == proposed[2:]


@given(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from("ab"), st.booleans()), max_size=14),
    st.integers(1, 4),
)
@example(4 * [(0, "a", True)] + [(1, "a", True)], 2)  # the pod that stands alone decides the share
@example(4 * [(0, "a", True)] + [(1, "a", False)], 2)
def test_complaints_are_those_of_a_plain_count(pods: list[tuple[int, str, bool]], nodes: int) -> None:
    """Of evictable pods alone, although evictors are not asked about each."""
    made = [
        a_pod(
            f"p{number}",
            owner=f"ReplicaSet/{owner}",
            node=f"n{node % nodes}",
            priority=0 if may_go else 2_000_000_000,
        )
        for number, (node, owner, may_go) in enumerate(pods)
    ]
    context = a_context([a_node(f"n{n}") for n in range(nodes)], made, exact=False)
    expected = {}
    for owner in "ab":
        on = Counter(node % nodes for node, of, may_go in pods if may_go and of == owner)
        upper = -(-on.total() // nodes)
        beyond = sum(max(each - upper, 0) for each in on.values())
        if nodes > 1 and max(on.values(), default=0) > 1 and beyond:
            expected[f"ReplicaSet default/{owner}"] = float(beyond)

    found = a_strategy(RemoveDuplicates).complaints(context)

    assert {each.sentence.rpartition(" of ")[2]: excess for each, excess in found.items()} == expected
