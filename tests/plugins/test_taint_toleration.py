"""TaintToleration: hard taints refuse, soft taints cost points."""

from typing import Any

import numpy as np
import pytest

from plimsoll.framework import CycleState, NoArgs, unresolvable
from plimsoll.plugins.taint_toleration import TaintToleration
from plimsoll.testing.builders import a_node, a_pod, a_snapshot, the_info
from plimsoll.testing.conformance import FilterPluginConformance, ScorePluginConformance

SOFT = "a:PreferNoSchedule", "b:PreferNoSchedule", "c:PreferNoSchedule"


@pytest.mark.parametrize(
    ("taints", "tolerations", "refused"),
    [
        pytest.param(["k=v:NoSchedule"], [], True, id="untolerated"),
        pytest.param(["k=v:NoExecute"], [], True, id="no-execute-keeps-new-pods-away"),
        pytest.param(["k=v:PreferNoSchedule"], [], False, id="soft"),
        pytest.param(["k=v:NoSchedule"], [{"key": "k", "value": "v"}], False, id="equal-is-the-default"),
        pytest.param(["k=v:NoSchedule"], [{"key": "k", "value": "w"}], True, id="other-value"),
        pytest.param(
            ["k:NoSchedule", "l:NoSchedule"], [{"key": "k", "operator": "Exists"}], True, id="one-of-two"
        ),
        pytest.param(
            ["k=5:NoSchedule"], [{"key": "k", "operator": "Gt", "value": "1"}], True, id="no-numbers"
        ),
        pytest.param(
            ["k:NoExecute"],
            [{"key": "k", "operator": "Exists", "tolerationSeconds": 0}],
            False,
            id="seconds-do-not-matter",
        ),
    ],
)
def test_hard_taints_need_tolerations(
    taints: list[str], tolerations: list[dict[str, Any]], refused: bool
) -> None:
    """Every taint with effect NoSchedule or NoExecute has to be covered."""
    pod = the_info(a_pod(tolerations=tolerations))

    codes = TaintToleration(NoArgs()).filter(
        CycleState(), pod, a_snapshot(a_node(taints=taints), a_node("free"))
    )

    assert codes.tolist() == [int(refused), 0]


def test_the_refusal_names_no_taint() -> None:
    """Since 1.36 the sentence is the same for all taints, so that nodes add up in one count."""
    status = TaintToleration(NoArgs()).refusal(1, CycleState(), the_info(a_pod()))

    assert status == unresolvable("node(s) had untolerated taint(s)")


@pytest.mark.parametrize(
    ("tolerations", "raw", "points"),
    [
        # the worst node has 3: 100 - 100*0//3 = 100, 100 - 100*1//3 = 67, 100 - 100*3//3 = 0
        pytest.param([], [0, 1, 3], [100, 67, 0], id="worked-example"),
        pytest.param([{"operator": "Exists"}], [0, 0, 0], [100, 100, 100], id="all-tolerated"),
        # only a is covered: 0, 0, 2
        pytest.param([{"key": "a", "operator": "Exists"}], [0, 0, 2], [100, 100, 0], id="one-tolerated"),
        pytest.param(
            [{"operator": "Exists", "effect": "NoSchedule"}],
            [0, 1, 3],
            [100, 67, 0],
            id="hard-ones-do-not-count",
        ),
    ],
)
def test_soft_taints_cost_points(
    tolerations: list[dict[str, Any]], raw: list[int], points: list[int]
) -> None:
    """Nodes are compared with the one that has most untolerated soft taints."""
    plugin = TaintToleration(NoArgs())
    pod = the_info(a_pod(tolerations=tolerations))
    snapshot = a_snapshot(*(a_node(f"n{count}", taints=SOFT[:count]) for count in (0, 1, 3)))

    counted = plugin.score(CycleState(), pod, snapshot)

    assert counted.tolist() == raw
    assert plugin.normalize(CycleState(), pod, counted).tolist() == points


def test_normalising_nothing_is_nothing() -> None:
    """No feasible node is not an error."""
    scores = TaintToleration(NoArgs()).normalize(
        CycleState(), the_info(a_pod()), np.array([], dtype=np.int64)
    )

    assert scores.tolist() == []


class TestFilterConformance(FilterPluginConformance):
    """The laws every filter plugin obeys."""

    plugin = TaintToleration(NoArgs())


class TestScoreConformance(ScorePluginConformance):
    """The laws every score plugin obeys."""

    plugin = TaintToleration(NoArgs())
