"""A strategy that proposes what is no proposal moves nothing, ends with a sentence, and stops no other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import pytest

from planning.builders import NOW, SURROUNDINGS, Named, a_rebalancing
from plimsoll.framework import NoArgs, PodInfo
from plimsoll.framework.descheduling.proposals import Bundle, Candidate
from plimsoll.framework.descheduling.strategy import StrategyKind
from plimsoll.planning.history import UnreadyReplacement
from plimsoll.planning.moves import PlanningContext
from plimsoll.planning.planners import proven_plan as plan
from plimsoll.testing.builders import a_cluster, a_node, a_pod


class Wrong:
    """Proposes a good candidate, then something else, then another good one."""

    name: ClassVar = "Wrong"
    kind: ClassVar = StrategyKind.DESCHEDULE
    args_model: ClassVar = NoArgs

    def __init__(self, makes: Callable[[PodInfo], Any]) -> None:
        self.makes = makes

    def candidates(self, context: Any) -> Iterator[Any]:
        """Such as a pod in place of a candidate."""
        pods = {pod.name: pod for node in context.nodes for pod in context.all_pods(node)}
        yield Candidate(pods["p"], "a", "it is good")
        yield self.makes(pods["q"])
        yield Candidate(pods["r"], "a", "it comes too late")


WRONG: dict[str, tuple[Callable[[PodInfo], Any], str]] = {
    "a pod": (lambda pod: pod, "expected a Candidate with its PodInfo"),
    "a text": (lambda pod: pod.key, "expected a Candidate with its PodInfo"),
    "a candidate without a pod": (lambda pod: Candidate(pod.pod, "a", "why"), "expected a Candidate with"),  # type: ignore[arg-type] # that is the point
    "an empty bundle": (lambda _: Bundle(()), "a Bundle has at least one candidate, in a tuple"),
    "a bundle of a list": (
        lambda pod: Bundle([Candidate(pod, "a", "why")]),  # type: ignore[arg-type] # likewise
        "a Bundle has at least one candidate, in a tuple",
    ),
    "a bundle with a pod": (lambda pod: Bundle((Candidate(pod, "a", "why"), pod)), "expected a Candid"),  # type: ignore[arg-type] # likewise
    "no reason": (lambda pod: Candidate(pod, "a", None), "a node, reason or target that is no text"),  # type: ignore[arg-type] # likewise
    "no target": (lambda pod: Candidate(pod, "a", "why", target=None), "target that is no text"),  # type: ignore[arg-type] # likewise
    "a node by number": (lambda pod: Candidate(pod, 7, "why"), "reason or target that is no text"),  # type: ignore[arg-type] # likewise
    "an unknown node": (lambda pod: Candidate(pod, "gone", "why"), "there is no such node"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_no_proposal_ends_the_strategy_and_no_other(wrong: str) -> None:
    makes, said = WRONG[wrong]
    pods = [a_pod(name, node="a", cpu="250m", owner=f"ReplicaSet/{name}") for name in ("p", "q", "r", "s")]
    cluster = a_cluster([a_node("a", cpu="1"), a_node("b", cpu="4")], pods)
    found = plan(a_rebalancing(Wrong(makes), Named("s")), cluster, SURROUNDINGS)

    assert [(move.pod.name, move.strategy) for move in found.moves] == [("s", "Named")]
    (failure,) = found.failures
    assert said in str(failure), failure


class Renewing(Named):
    """Wants a fresh pod in place of one, and says so."""

    name: ClassVar = "Renewing"
    renews: ClassVar = True


@pytest.mark.parametrize("strategy", [Named, Renewing])
@pytest.mark.parametrize("name", ["next", "other"])
def test_a_replacement_that_is_not_ready_is_only_restarted(strategy: Any, name: str) -> None:
    """By a strategy that renews pods, and only itself: others of its owner wait for it."""
    pods = [a_pod(each, node="a", owner="ReplicaSet/web") for each in ("next", "other")]
    cluster = a_cluster([a_node("a"), a_node("b")], pods)
    owner = cluster.pods[pods[0].uid].template.owner
    assert owner is not None
    unready = UnreadyReplacement(pods[0].uid, "default/next", "it starts", "record")
    around = PlanningContext(now=NOW, unready={f"default/{owner.uid}": unready})
    found = plan(a_rebalancing(strategy(name)), cluster, around)

    reasons = [each.refusal.reason for each in found.refused]
    is_free = strategy is Renewing and name == "next"
    assert ("ReplacementNotReady" in reasons) is not is_free
