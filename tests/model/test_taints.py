"""Tolerations cover taints by key, value, effect and operator."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.model.kinds.node import Taint
from plimsoll.model.kinds.pod import Toleration
from plimsoll.model.taints import tolerates, untolerated

TAINT = Taint(key="gpu", value="7", effect="NoSchedule")
TAINTS = st.builds(
    Taint,
    key=st.sampled_from(["gpu", "spot"]),
    value=st.sampled_from(["", "7"]),
    effect=st.sampled_from(["NoSchedule", "PreferNoSchedule", "NoExecute"]),
)


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        (Toleration(key="gpu", value="7"), True),
        (Toleration(key="gpu", operator="Equal", value="8"), False),
        (Toleration(key="gpu", operator="Exists"), True),
        (Toleration(operator="Exists"), True),
        (Toleration(key="gpu", operator="Exists", effect="NoExecute"), False),
        (Toleration(key="spot", operator="Exists"), False),
        (Toleration(value="7"), True),
        (Toleration(key="gpu", operator="Gt", value="5"), False),
        (Toleration(key="gpu", operator="exists"), False),
    ],
)
def test_covers_by_key_value_effect_and_operator(toleration: Toleration, expected: bool) -> None:
    """An empty key or effect covers all; an unknown operator, numeric ones included, covers nothing."""
    assert tolerates(toleration, TAINT) is expected


@pytest.mark.parametrize(
    ("operator", "value", "expected"),
    [("Gt", "5", True), ("Gt", "7", False), ("Lt", "9", True), ("Lt", "x", False)],
)
def test_numeric_operators_count_when_asked_for(operator: str, value: str, expected: bool) -> None:
    """With them on, the taint's value is compared as an integer."""
    assert tolerates(Toleration(key="gpu", operator=operator, value=value), TAINT, numeric=True) is expected


@given(st.lists(TAINTS))
def test_everything_is_tolerated_by_the_widest_toleration(taints: list[Taint]) -> None:
    """Operator Exists without key and effect leaves no taint uncovered."""
    assert untolerated(taints, [Toleration(operator="Exists")]) is None


@given(st.lists(TAINTS))
def test_without_tolerations_the_first_hard_taint_counts(taints: list[Taint]) -> None:
    """PreferNoSchedule alone keeps no pod away, and the order of the taints decides which is named."""
    hard = [taint for taint in taints if taint.effect != "PreferNoSchedule"]

    assert untolerated(taints, []) == (hard[0] if hard else None)
