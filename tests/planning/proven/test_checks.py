"""The order of the checks: the refusal that a pod gets of several, and the page that lists them."""

from typing import Any

import pytest
from msgspec.structs import replace

from planning.builders import SURROUNDINGS, Named, a_rebalancing, reasons
from planning.proven.test_planner import a_budget, crowded, with_budgets
from plimsoll.planning import proven
from plimsoll.planning.history import MoveHistory, MoveOutcome, PastMove, UnreadyReplacement
from plimsoll.planning.limits import Ceiling, Limits
from plimsoll.planning.moves import replacement_of
from plimsoll.planning.planners import proven_plan
from plimsoll.planning.proven.checks import NODE_CHECKS, POD_CHECKS, TARGET_CHECKS
from plimsoll.planning.proven.plan_builder import PlanBuilder
from plimsoll_optimal.move_requests import may_be_sent

OWNER, POD = "default/uid-ReplicaSet/web", "uid-default-p0"
NOW = SURROUNDINGS.now.timestamp()

#: The reasons to refuse a pod that everything keeps, in the order of the checks.
ORDER = (
    *("Stays", "TotalLimit", "Budget", "ReplacementNotReady", "BudgetBackoff", "HeldBack", "AlreadyMoving"),
    *("MovedRecently", "OtherScheduler"),
)


def a_past(fate: MoveOutcome, budget: str = "") -> PastMove:
    return PastMove("", "Named", OWNER, "web", "full", fate, NOW - 10, budget)


def kept(reasons: tuple[str, ...], *names: str) -> tuple[Any, ...]:
    """A policy, a cluster and its surroundings in which these reasons keep the pods."""
    labels = {"stay": ""} if "Stays" in reasons else {}
    scheduler = "theirs" if "OtherScheduler" in reasons else "default-scheduler"
    budget = a_budget(allowed=0 if "Budget" in reasons else 3)
    cluster = with_budgets(crowded(2, labels=labels, schedulerName=scheduler), budget)
    past = [a_past(MoveOutcome.BLOCKED, budget.key)] if "BudgetBackoff" in reasons else []
    past += [a_past(MoveOutcome.RETURNED)] if "HeldBack" in reasons else []
    unready = {OWNER: UnreadyReplacement("other", "default/other", "it has no node", "record")}
    around = replace(
        SURROUNDINGS,
        unready=unready if "ReplacementNotReady" in reasons else {},
        memory=MoveHistory(past, NOW),
        moving=frozenset({POD}) if "AlreadyMoving" in reasons else frozenset(),
        moved=frozenset({POD}) if "MovedRecently" in reasons else frozenset(),
    )
    limits = Limits(total=Ceiling(count=0) if "TotalLimit" in reasons else Ceiling())
    return a_rebalancing(Named(*names), limits=limits), cluster, around


def test_the_page_lists_the_checks_in_their_order() -> None:
    page = str(proven.__doc__).partition("The order of the checks::")[2]
    lines = page.partition("An accepted move")[0].splitlines()
    listed = [line[23:].split()[0] for line in lines if line]

    assert listed == [each.__name__ for each in (*NODE_CHECKS, *POD_CHECKS, *TARGET_CHECKS)]


def test_of_several_refusals_the_first_is_given() -> None:
    """What keeps the pod is taken away, one reason after the other."""
    found = [reasons(proven_plan(*kept(ORDER[at:], "p0"))) for at in range(len(ORDER) + 1)]

    assert found == [*({"p0": reason} for reason in ORDER), {}]


@pytest.mark.parametrize(("limit", "asked"), [((), ["p0", "p1"]), (("TotalLimit",), ["p0"])])
def test_a_protected_pod_ends_the_run_whose_total_is_used_up(limit: Any, asked: Any) -> None:
    found = reasons(proven_plan(*kept(("Stays", *limit))))

    assert found == dict.fromkeys(asked, "Stays")


@pytest.mark.parametrize("reason", ORDER)
def test_a_pod_may_be_sent_whatever_the_limits_of_a_run(reason: str) -> None:
    plan = PlanBuilder(*kept((reason,)))
    pod = plan.fork.pods[POD]

    assert may_be_sent(plan, pod, "full", "Named") is (reason == "TotalLimit")


def test_a_pod_that_a_plan_has_made_is_not_sent_on() -> None:
    """It does not exist yet."""
    plan = PlanBuilder(*kept(("TotalLimit",)))
    pod = replacement_of(plan.fork.pods[POD], plan.fork, "full")

    assert not may_be_sent(plan, pod, "full", "Named")
