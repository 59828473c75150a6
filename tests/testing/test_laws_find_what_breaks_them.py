"""Laws that authors inherit fail for a strategy that breaks them; the fake API server tells uids apart."""

from typing import Any, ClassVar

import msgspec
import pytest

from devices.builders import a_claim
from plimsoll.framework import NoArgs
from plimsoll.framework.descheduling import Candidate, Planner, Strategy, StrategyKind
from plimsoll.framework.descheduling.proposals import Verdict
from plimsoll.model.kinds.resource_claim import Consumer, ResourceClaimStatus
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.drawn_worlds import World
from plimsoll.testing.fakes import FakeClaims
from plimsoll.testing.strategy_conformance import StrategyConformance


class Everything(Strategy):
    """Proposes every pod until none is left, ended ones too; remembers its planner."""

    name: ClassVar = "Everything"
    kind: ClassVar = StrategyKind.DESCHEDULE
    args_model: ClassVar = NoArgs
    seen: ClassVar[list[Planner]] = []

    def candidates(self, context: Any) -> Any:
        self.seen.append(context.planner)
        for _ in range(9):
            left = [pod for name in context.nodes for pod in context.pods(name)]
            left += list(context.unplaced)
            if not left:
                return
            yield Candidate(left[0], left[0].pod.spec.node_name, "it is there")


WORLD = World(
    nodes=[a_node("n1")],
    pods=[a_pod("a", node="n1"), a_pod("b", node="n1")],
    pod=a_pod("ended", node="n1", status={"phase": "Succeeded"}),
    extra=a_pod("extra", node="n1"),
    node=a_node("n1"),
    objects=(),
    kinds=(),
)


class Laws(StrategyConformance):
    strategy = Everything(NoArgs())


@pytest.mark.parametrize(("verdict", "proposed"), [(Verdict.ACCEPTED, 3), (Verdict.REFUSED, 9)])
def test_pods_leave_when_they_are_accepted_and_only_then(verdict: Verdict, proposed: int) -> None:
    """So that a strategy that goes on sees what the planner would show it."""
    found = Laws()._proposed(WORLD, Planner.PROVEN, verdict)

    assert len(found) == proposed
    assert len({each.pod.name for each in found}) == (3 if verdict is Verdict.ACCEPTED else 1)


@pytest.mark.parametrize(
    ("declared", "wanted", "run"),
    [
        (frozenset(Planner), Planner.OPTIMAL, Planner.OPTIMAL),
        (frozenset({Planner.PROVEN}), Planner.UPSTREAM, Planner.PROVEN),
        (frozenset({Planner.UPSTREAM, Planner.PROVEN}), Planner.OPTIMAL, Planner.PROVEN),
    ],
)
def test_a_strategy_runs_under_the_planner_that_is_drawn_or_one_that_it_declares(
    declared: frozenset[Planner], wanted: Planner, run: Planner
) -> None:
    kind: Any = type("Declared", (Everything,), {"planners": declared, "seen": []})
    laws = type("DeclaredLaws", (Laws,), {"strategy": kind(NoArgs())})()

    laws._proposed(WORLD, wanted)

    assert kind.seen == [run]


async def test_a_claim_is_given_back_by_the_uid_of_its_pod() -> None:
    """A pod made again under the same name keeps its reservation."""
    pod, namesake = a_pod("p", uid="u1"), a_pod("p", uid="u2")
    claim = a_claim()
    users = tuple(Consumer(resource="pods", name=each.name, uid=each.uid) for each in (pod, namesake))
    claims = FakeClaims(msgspec.structs.replace(claim, status=ResourceClaimStatus(reserved_for=users)))

    answer = await claims.unreserve(claim, pod)

    assert answer.claim is not None
    assert [each.uid for each in answer.claim.status.reserved_for] == ["u2"]
    assert claims.lost == 0
