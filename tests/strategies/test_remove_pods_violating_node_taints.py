"""RemovePodsViolatingNodeTaints, against the cases of upstream's own tests."""

from typing import Any

import pytest
from pydantic import ValidationError

from plimsoll.framework.descheduling.measurements import Planner
from plimsoll.model.kinds.node import Node
from plimsoll.model.taints import CONSOLIDATING, UNSCHEDULABLE_TAINT
from plimsoll.strategies.remove_pods_violating_node_taints import RemovePodsViolatingNodeTaints
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.strategy_conformance import StrategyConformance
from strategies.builders import a_context, a_strategy, an_evictor, evicted

TOLERATION = {"key": "dedicated", "operator": "Equal", "value": "db", "effect": "NoSchedule"}


def moved(
    taints: list[str],
    args: dict[str, Any] | None = None,
    *,
    tolerations: list[dict[str, Any]] | tuple[Any, ...] = (),
    exact: bool = True,
    **pod: Any,
) -> list[str]:
    pods = [
        a_pod("p", node="bad", owner="ReplicaSet/web", tolerations=tolerations, **pod),
        a_pod("q", node="good", owner="ReplicaSet/web"),
    ]
    context = a_context([a_node("bad", taints=taints), a_node("good")], pods, exact=exact)
    return evicted(a_strategy(RemovePodsViolatingNodeTaints, **(args or {})), context)


@pytest.mark.parametrize(
    ("taints", "args", "tolerations", "goes"),
    [
        pytest.param(["dedicated=db:NoSchedule"], {}, [], True, id="untolerated"),
        pytest.param(["dedicated=db:NoSchedule"], {}, [TOLERATION], False, id="tolerated"),
        pytest.param(["dedicated=db:NoSchedule", "x:NoSchedule"], {}, [TOLERATION], True, id="one-of-two"),
        pytest.param(["x:NoExecute"], {}, [], False, id="no-execute-is-not-ours"),
        pytest.param(["x:PreferNoSchedule"], {}, [], False, id="soft"),
        pytest.param(
            ["x:PreferNoSchedule"], {"includePreferNoSchedule": True}, [], True, id="soft-on-request"
        ),
        pytest.param(["x=1:NoSchedule"], {"excludedTaints": ["x"]}, [], False, id="excluded-by-key"),
        pytest.param(["x=1:NoSchedule"], {"excludedTaints": ["x=1"]}, [], False, id="excluded-by-pair"),
        pytest.param(["x=1:NoSchedule"], {"excludedTaints": ["x=2"]}, [], True, id="another-value"),
        pytest.param(["x=1:NoSchedule"], {"includedTaints": ["y"]}, [], False, id="not-included"),
        pytest.param(["x=1:NoSchedule"], {"includedTaints": []}, [], False, id="none-included"),
        pytest.param(
            ["dedicated=db:NoSchedule", "x:NoSchedule"],
            {"includedTaints": ["dedicated"]},
            [TOLERATION],
            False,
            id="the-included-one-is-tolerated",
        ),
    ],
)
def test_pods_leave_taints_they_do_not_tolerate(
    taints: list[str], args: dict[str, Any], tolerations: list[dict[str, Any]], goes: bool
) -> None:
    """Only relevant taints count."""
    assert moved(taints, args, tolerations=tolerations) == (["p"] if goes else [])


def test_a_cordon_moves_pods_upstream_only() -> None:
    """Proven passes over the cordon's taint unless ``includedTaints`` names it (requirement 11)."""
    cordon = f"{UNSCHEDULABLE_TAINT.key}:NoSchedule"

    assert moved([cordon]) == ["p"]
    assert moved([cordon], exact=False) == []
    assert moved([cordon], {"includedTaints": [UNSCHEDULABLE_TAINT.key]}, exact=False) == ["p"]


def test_namespaces_and_labels_narrow_it() -> None:
    """Pods out of the strategy's scope stay."""
    taints = ["x:NoSchedule"]

    assert moved(taints, {"namespaces": {"exclude": ["default"]}}) == []
    assert moved(taints, {"namespaces": {"include": ["default"]}}) == ["p"]
    assert moved(taints, {"labelSelector": {"matchLabels": {"app": "db"}}}, labels={"app": "web"}) == []
    assert moved(taints, {"labelSelector": {"matchLabels": {"app": "web"}}}, labels={"app": "web"}) == ["p"]


def test_the_reason_names_the_taint() -> None:
    """As kubectl writes it; a protected pod is reported with it."""
    pods = [a_pod("p", node="bad", owner="DaemonSet/ds")]
    context = a_context([a_node("bad", taints=["x=1:NoSchedule"]), a_node("good")], pods)

    assert evicted(a_strategy(RemovePodsViolatingNodeTaints), context) == []
    assert [(each.wanted, each.refusal.reason) for each in context.protected] == [
        ("the pod does not tolerate taint x=1:NoSchedule of its node", "DaemonSetPods")
    ]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(a_node("other", taints=["x:NoSchedule"]), id="tainted"),
        pytest.param(a_node("other", unschedulable=True), id="cordoned"),
        pytest.param(a_node("other", cpu="100m"), id="too-small"),
        pytest.param(a_node("other", labels={"kubernetes.io/os": "windows"}), id="mismatched"),
    ],
)
def test_node_fit_keeps_pods_that_fit_nowhere_else(other: Node) -> None:
    """The evictor's option, exactly as upstream has it."""
    pods = [
        a_pod("p", node="bad", owner="ReplicaSet/web", cpu="1", node_selector={"kubernetes.io/os": "linux"})
    ]
    bad = a_node("bad", taints=["x:NoSchedule"], labels={"kubernetes.io/os": "linux"})
    context = a_context([bad, other], pods, evictor=an_evictor(nodeFit=True))

    assert evicted(a_strategy(RemovePodsViolatingNodeTaints), context) == []


def test_both_lists_are_refused() -> None:
    """With upstream's words."""
    with pytest.raises(ValidationError, match="either includedTaints or excludedTaints can be set"):
        a_strategy(RemovePodsViolatingNodeTaints, includedTaints=["a"], excludedTaints=["b"])


def test_planners_are_distinguished_by_the_context() -> None:
    """The builder's default is exactness."""
    assert a_context([a_node()]).planner is Planner.UPSTREAM


class TestConformance(StrategyConformance):
    """The laws every strategy obeys."""

    strategy = a_strategy(RemovePodsViolatingNodeTaints, includePreferNoSchedule=True)


def test_a_node_that_is_to_be_emptied_later_is_left_alone() -> None:
    """Our own soft taint is about new pods; descheduler's decisions know no such difference."""
    taints = [f"{CONSOLIDATING}:PreferNoSchedule"]
    asked = {"includePreferNoSchedule": True}

    assert moved(taints, asked, exact=False) == []
    assert moved(taints, asked) == ["p"]
