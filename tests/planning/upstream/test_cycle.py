"""The Upstream planner: order, limits and what becomes of evicted pods are descheduler's."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from planning.builders import NOW, Guard, Named
from plimsoll.framework.descheduling.proposals import Candidate, Refusal, Verdict
from plimsoll.framework.descheduling.strategy import StrategyKind
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.selector_text import parse_selector
from plimsoll.planning.limits import NO_CEILING, Ceiling, Limits
from plimsoll.planning.moves import PlanningContext
from plimsoll.planning.upstream.cycle import (
    DRY_RUN,
    EvictionAnswer,
    EvictionResult,
    StrategyProfile,
    UpstreamCycle,
    UpstreamEviction,
    UpstreamOutcome,
    UpstreamPolicy,
)
from plimsoll.testing.builders import a_cluster, a_node, a_pod

NODES = [a_node("n1"), a_node("n2")]


class Balancing(Named):
    name = "Balancing"
    kind = StrategyKind.BALANCE


def three_pods(**kwargs: Any) -> list[Pod]:
    return [a_pod(f"p{n}", node="n1", owner="ReplicaSet/web", **kwargs) for n in range(2)] + [
        a_pod("q", node="n2", namespace="other", owner="ReplicaSet/web", **kwargs)
    ]


TERMINATING = EvictionAnswer(EvictionResult.TERMINATING)
NO = Refusal("PodDisruptionBudget", "it would violate the budget")


def always(answer: EvictionAnswer) -> Callable[..., Any]:
    """The server gives the same answer to every eviction."""
    return lambda _: answer


DRY_RUNS = always(DRY_RUN)


def refusing(*names: str) -> Callable[..., Any]:
    """The server refuses these pods."""
    refused = EvictionAnswer(EvictionResult.REFUSED, NO)
    return lambda eviction: refused if eviction.pod.name in names else TERMINATING


def run(
    *strategies: Any,
    pods: list[Pod] | None = None,
    nodes: list[Node] = NODES,
    limits: dict[str, Any] | None = None,
    selector: str = "",
    server: Callable[..., Any] = DRY_RUNS,
    **around: Any,
) -> UpstreamOutcome:
    """One cycle whose evictions the server answers one by one."""
    cluster = a_cluster(nodes, three_pods() if pods is None else pods)
    policy = UpstreamPolicy(
        tuple(StrategyProfile(f"profile{n}", (Guard(),), (each,)) for n, each in enumerate(strategies)),  # type: ignore[arg-type] # a fake has only what is used
        parse_selector(selector),
        replace(Limits(per_workload=NO_CEILING), **(limits or {})),
    )
    cycle = UpstreamCycle(policy, cluster, PlanningContext(now=NOW, **around))
    asking = cycle.evictions()
    answer = None
    try:
        while True:
            answer = server(asking.send(answer))  # type: ignore[arg-type] # a fake has only what is used
    except StopIteration:
        return cycle.outcome


def names(outcome: UpstreamOutcome) -> list[str]:
    return [each.pod.name for each in outcome.evictions]


def test_deschedule_runs_before_balance_in_all_profiles() -> None:
    """Whatever the order of the profiles; an evicted pod is gone for the rest of the cycle."""
    outcome = run(Balancing(), Named("p1"))

    assert [(each.profile, each.strategy, each.pod.name) for each in outcome.evictions] == [
        ("profile1", "Named", "p1"),
        ("profile0", "Balancing", "p0"),
        ("profile0", "Balancing", "q"),
    ]


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        pytest.param({"total": Ceiling(count=1)}, ["p0"], id="total"),
        pytest.param({"total": Ceiling(count=0)}, [], id="zero-is-a-limit"),
        pytest.param({"per_node": Ceiling(count=1)}, ["p0", "q"], id="node"),
        pytest.param({"per_namespace": Ceiling(count=1)}, ["p0", "q"], id="namespace"),
    ],
)
def test_limits_are_common_to_all(limits: dict[str, Any], expected: list[str]) -> None:
    """A second strategy finds them used up."""
    assert names(run(Named(), Balancing(), limits=limits)) == expected


def test_refused_evictions_use_no_limit() -> None:
    """The eviction API said no: the next pod goes, and the strategy receives the refusal."""
    strategy = Named()
    outcome = run(strategy, limits={"total": Ceiling(count=1)}, server=refusing("p0"))

    assert names(outcome) == ["p1"]
    assert strategy.verdicts[0] == ("p0", Verdict.REFUSED)
    assert ("p0", NO) in [(each.pod.name, each.refusal) for each in outcome.refused]


@pytest.mark.parametrize(("refused", "expected"), [(["p0"], ["p1"]), (["p0", "p1"], ["q"]), ([], ["p0"])])
def test_each_answer_comes_before_the_next_decision(refused: list[str], expected: list[str]) -> None:
    """The limit counts what was evicted, so as many are tried as it takes."""
    asked = []

    def server(eviction: UpstreamEviction) -> Any:
        asked.append(eviction.pod.name)
        return refusing(*refused)(eviction)

    outcome = run(Named(), limits={"total": Ceiling(count=1)}, server=server)

    assert names(outcome) == expected
    assert asked == [*refused, *expected]


def test_when_nothing_more_may_be_evicted_no_eviction_follows() -> None:
    """The strategies after it are heard, and their candidates stay for the same reason."""
    frozen = EvictionAnswer(EvictionResult.CLOSED, Refusal("EvictionBudget", "a window has opened"))
    asked = []

    def server(eviction: UpstreamEviction) -> EvictionAnswer:
        asked.append(eviction.pod.name)
        return frozen if eviction.pod.name == "p1" else TERMINATING

    outcome = run(Named(), Balancing(), server=server)

    assert asked == ["p0", "p1"]
    assert names(outcome) == ["p0"]
    assert {(each.strategy, each.refusal.reason) for each in outcome.refused} == {
        ("Named", "EvictionBudget"),
        ("Balancing", "EvictionBudget"),
    }


def test_an_evicted_pod_is_gone_or_terminating() -> None:
    """While it is terminating evicting it again succeeds, and counts again."""
    assert names(run(Named("q"), Balancing("q"))) == ["q"]
    assert names(run(Named("q"), Balancing("q"), server=always(TERMINATING))) == ["q", "q"]


def test_ended_pods_go_too() -> None:
    """They hold no place, and are found by strategies that ask for all pods."""
    ended = a_pod("done", node="n1", status={"phase": "Failed"})
    cluster = a_cluster(NODES, [])
    infos = [cluster.templates.info(ended)]

    for answer, times in ((DRY_RUN, 1), (TERMINATING, 2)):
        outcome = run(Named(), Balancing(), pods=[], unplaced=infos, server=always(answer))
        assert names(outcome) == ["done"] * times


def test_a_strategy_that_kept_its_list_finds_the_pod_gone() -> None:
    """Not found: refused, and no limit is used."""

    class Twice(Named):
        def candidates(self, context: Any) -> Iterator[Candidate]:
            pods = context.pods("n2")
            for pod in [*pods, *pods]:
                self.verdicts.append((yield Candidate(pod, "n2", "twice")))

    strategy = Twice()

    assert names(run(strategy)) == ["q"]
    assert strategy.verdicts == [Verdict.ACCEPTED, Verdict.REFUSED]


def test_fewer_than_two_nodes_and_nothing_runs() -> None:
    """Unready nodes and those not selected do not count; a node without Ready condition does."""
    unready = a_node("n2", status={"conditions": [{"type": "Ready", "status": "False"}]})
    silent = a_node("n2", status={"conditions": []})

    assert names(run(Named(), nodes=[NODES[0], unready])) == []
    assert names(run(Named(), selector="kubernetes.io/hostname=n1")) == []
    assert names(run(Named(), nodes=[NODES[0], silent])) == ["p0", "p1", "q"]


def test_a_pod_without_uid_is_refused() -> None:
    """As upstream's evictor does."""
    nameless = a_pod("p", node="n1", owner="ReplicaSet/web", metadata={"uid": ""})

    assert names(run(Named(), pods=[nameless])) == []


def test_a_failure_is_reported_with_its_profile() -> None:
    """The other strategies run."""

    class Raises(Named):
        def candidates(self, context: Any) -> Any:
            raise LookupError("nothing to go by")

    outcome = run(Raises(), Balancing("q"))

    assert names(outcome) == ["q"]
    assert [(each.profile, each.kind) for each in outcome.failures] == [("profile0", StrategyKind.DESCHEDULE)]
    assert "nothing to go by" in str(outcome.failures[0].error)
