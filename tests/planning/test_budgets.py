"""Disruption budgets as the eviction API counts them."""

from typing import Any

import pytest

from plimsoll.model.decoding import convert
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.workload import PodDisruptionBudget
from plimsoll.planning.budgets import BudgetLedger
from plimsoll.testing.builders import a_pod, the_info

READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
UNREADY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}


def a_budget(
    *, spec: dict[str, Any] | None = None, generation: int = 0, **status: Any
) -> PodDisruptionBudget:
    return convert(
        PodDisruptionBudget,
        {
            "metadata": {"name": "web", "namespace": "default", "generation": generation},
            "spec": {"selector": {}, **(spec or {})},
            "status": {"disruptionsAllowed": 0, "currentHealthy": 2, "desiredHealthy": 2, **status},
        },
    )


def reason(pod: Pod, *budgets: PodDisruptionBudget) -> str:
    refusal = BudgetLedger(budgets).refusal(the_info(pod))
    return "" if refusal is None else refusal.message


@pytest.mark.parametrize(
    ("pod", "budget", "refused"),
    [
        pytest.param(a_pod(status=READY), a_budget(), True, id="none-left"),
        pytest.param(a_pod(status=READY), a_budget(disruptionsAllowed=1), False, id="one-left"),
        pytest.param(a_pod(status={"phase": "Pending"}), a_budget(), False, id="pending"),
        pytest.param(a_pod(status={"phase": "Failed"}), a_budget(), False, id="ended"),
        pytest.param(
            a_pod(status=READY, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
            a_budget(),
            False,
            id="leaving-already",
        ),
        pytest.param(a_pod(status=UNREADY), a_budget(), False, id="unready-and-the-rest-is-healthy"),
        pytest.param(a_pod(status=UNREADY), a_budget(currentHealthy=1), True, id="unready-and-needed"),
        pytest.param(a_pod(status=UNREADY), a_budget(desiredHealthy=0), True, id="nothing-is-desired"),
        pytest.param(
            a_pod(status=UNREADY),
            a_budget(currentHealthy=1, spec={"unhealthyPodEvictionPolicy": "AlwaysAllow"}),
            False,
            id="unready-and-always-allowed",
        ),
        pytest.param(a_pod(namespace="other", status=READY), a_budget(), False, id="another-namespace"),
        pytest.param(a_pod(status=READY), a_budget(spec={"selector": None}), False, id="no-selector"),
        pytest.param(
            a_pod(status=READY),
            a_budget(spec={"selector": {"matchExpressions": [{"key": "a", "operator": "Bogus"}]}}),
            False,
            id="a-selector-that-means-nothing",
        ),
    ],
)
def test_who_needs_a_disruption(pod: Pod, budget: PodDisruptionBudget, refused: bool) -> None:
    """The rules of the eviction subresource."""
    assert bool(reason(pod, budget)) is refused


def test_a_changed_budget_is_waited_for() -> None:
    """Its status is about an older spec."""
    budget = a_budget(generation=2, observedGeneration=1, disruptionsAllowed=5)

    assert reason(a_pod(status=READY), budget).endswith("has changed and is still being processed")


def test_too_many_granted_evictions_are_waited_for() -> None:
    """The controller has not seen them yet."""
    granted = {f"p{number}": "2026-01-01T00:00:00Z" for number in range(2001)}
    budget = a_budget(disruptionsAllowed=5, disruptedPods=granted)

    assert reason(a_pod(status=READY), budget).endswith("has too many evictions under way")


def test_each_taken_disruption_counts() -> None:
    """An eviction that needs none takes none."""
    ledger = BudgetLedger([a_budget(disruptionsAllowed=1)])
    ready = the_info(a_pod(status=READY))

    assert ledger.take(the_info(a_pod(status=UNREADY))) == "default/web"
    assert ledger.refusal(ready) is None
    assert ledger.take(ready) == "default/web"
    assert "1 taken by this plan" in ledger.refusal(ready).message
    assert ledger.take(the_info(a_pod(namespace="other"))) == ""
