"""The cost of an eviction, by each criterion alone."""

from collections.abc import Callable
from typing import Any

import pytest

from plimsoll.testing.builders import a_cluster, a_node, a_pod
from plimsoll.toolkit.descheduling.eviction_order import cheapest_first, eviction_cost

SPARED = "descheduler.alpha.kubernetes.io/prefer-no-eviction"
COST = "controller.kubernetes.io/pod-deletion-cost"


def a_status(
    *, restarts: int = 0, ready: bool = True, started: str = "2026-01-01T00:00:00Z"
) -> dict[str, Any]:
    return {
        "phase": "Running",
        "startTime": started,
        "conditions": [{"type": "Ready", "status": str(ready)}],
        "containerStatuses": [{"name": "c", "restartCount": restarts}],
    }


def order(cheap: dict[str, Any], dear: dict[str, Any], key: Callable[..., Any]) -> list[str]:
    """Names of two pods in order of cost; the dear one is passed first."""
    pods = [a_pod("a-dear", node="n", **dear), a_pod("z-cheap", node="n", **cheap)]
    cluster = a_cluster([a_node("n")], pods)
    return [pod.name for pod in sorted(cluster.pods.values(), key=key)]


@pytest.mark.parametrize("key", [eviction_cost, cheapest_first])
@pytest.mark.parametrize(
    ("cheap", "dear"),
    [
        pytest.param({"priority": 1}, {"priority": 2}, id="priority"),
        pytest.param({}, {"annotations": {SPARED: ""}}, id="wish"),
        pytest.param({"annotations": {COST: "-5"}}, {}, id="deletion-cost"),
        pytest.param({}, {"annotations": {COST: "1"}}, id="deletion-cost-of-the-other"),
        pytest.param({"status": a_status(ready=False)}, {"status": a_status()}, id="readiness"),
        pytest.param({"status": a_status(restarts=3)}, {"status": a_status()}, id="restarts"),
        pytest.param({"status": a_status(started="2026-01-02T00:00:00Z")}, {"status": a_status()}, id="age"),
    ],
)
def test_the_cheaper_pod_comes_first(
    cheap: dict[str, Any], dear: dict[str, Any], key: Callable[..., Any]
) -> None:
    """All else being equal."""
    assert order(cheap, dear, key) == ["z-cheap", "a-dear"]


def test_a_cost_that_is_no_number_is_above_all_others() -> None:
    """Any text may stand in an annotation; one that cannot be read protects."""
    assert order({"annotations": {COST: "2147483647"}}, {"annotations": {COST: "cheap"}}, eviction_cost) == [
        "z-cheap",
        "a-dear",
    ]
