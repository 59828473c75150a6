"""Disruption budgets as the eviction API counts them."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.model.decoding import convert
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.workload import PodDisruptionBudget
from plimsoll.planning.budgets import BudgetLedger
from plimsoll.testing.builders import a_pod, the_info

READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
UNREADY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}


def a_budget(
    *, name: str = "web", spec: dict[str, Any] | None = None, generation: int = 0, **status: Any
) -> PodDisruptionBudget:
    return convert(
        PodDisruptionBudget,
        {
            "metadata": {"name": name, "namespace": "default", "generation": generation},
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


LABELS = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xyz"), max_size=3)
REQUIREMENTS: st.SearchStrategy[tuple[str, list[str]]] = st.one_of(
    st.tuples(st.sampled_from(("In", "NotIn")), st.lists(st.sampled_from("xyz"), min_size=1, unique=True)),
    st.tuples(st.sampled_from(("Exists", "DoesNotExist", "Bogus")), st.just([])),
)


@st.composite
def selectors(draw: st.DrawFn) -> dict[str, Any]:
    expressions = draw(st.lists(st.tuples(st.sampled_from("abc"), REQUIREMENTS), max_size=2))
    return {
        "matchLabels": draw(LABELS),
        "matchExpressions": [
            {"key": key, "operator": operator, "values": values} for key, (operator, values) in expressions
        ],
    }


def covers(selector: dict[str, Any], labels: dict[str, str]) -> bool:
    """By the definition of ``metav1.LabelSelector``, one requirement after the other."""
    holds: dict[str, Callable[[str | None, list[str]], bool]] = {
        "In": lambda value, values: value in values,
        "NotIn": lambda value, values: value not in values,
        "Exists": lambda value, _: value is not None,
        "DoesNotExist": lambda value, _: value is None,
        "Bogus": lambda *_: False,
    }
    expressions = selector["matchExpressions"]
    return selector["matchLabels"].items() <= labels.items() and all(
        holds[each["operator"]](labels.get(each["key"]), each["values"]) for each in expressions
    )


@given(labels=LABELS, drawn=st.lists(selectors(), max_size=6))
def test_any_budgets_cover_the_pods_that_their_selectors_match(
    labels: dict[str, str], drawn: list[dict[str, Any]]
) -> None:
    """Sorted by name, whichever label they are found by."""
    budgets = [a_budget(name=f"b{at}", spec={"selector": each}) for at, each in enumerate(drawn)]
    pod = the_info(a_pod(labels=labels, status=READY))

    over = [budget.metadata.name for budget in BudgetLedger(reversed(budgets)).over(pod)]

    assert over == [f"b{at}" for at, each in enumerate(drawn) if covers(each, labels)]
