"""The sentence a user reads when nothing fits, word for word as kube-scheduler composes it."""

import pytest

from plimsoll.framework import SKIP, SUCCESS, Code, Diagnosis, Status
from plimsoll.framework.status import count_reasons, unresolvable, unschedulable


@pytest.mark.parametrize(
    ("diagnosis", "message"),
    [
        pytest.param(
            Diagnosis(5, {"node(s) had untolerated taint(s)": 2, "Insufficient cpu": 3}),
            "0/5 nodes are available: 2 node(s) had untolerated taint(s), 3 Insufficient cpu.",
            id="counts",
        ),
        pytest.param(
            Diagnosis(12, {"x": 10, "y": 2, "Insufficient cpu": 3}),
            "0/12 nodes are available: 10 x, 2 y, 3 Insufficient cpu.",
            id="sorted-as-texts",
        ),
        pytest.param(
            Diagnosis(
                4,
                pre_filter_message='persistentvolumeclaim "data" not found',
                post_filter_message="not found",
            ),
            '0/4 nodes are available: persistentvolumeclaim "data" not found. not found',
            id="pre-filter-replaces-the-counts",
        ),
        pytest.param(Diagnosis(0), "0/0 nodes are available:", id="nothing-to-say"),
    ],
)
def test_messages_are_upstreams(diagnosis: Diagnosis, message: str) -> None:
    """Examples of kube-scheduler 1.36."""
    assert str(diagnosis) == message


def test_a_node_may_give_several_reasons() -> None:
    """Counts add up over nodes and reasons, so they can exceed the number of nodes."""
    counted = count_reasons(
        [(unschedulable("Insufficient cpu", "Insufficient memory"), 2), (unresolvable("x"), 1)]
    )

    assert counted == {"Insufficient cpu": 2, "Insufficient memory": 2, "x": 1}


@pytest.mark.parametrize("code", list(Code))
def test_only_three_codes_reject(code: Code) -> None:
    """Rejected pods are unschedulable for now; everything else is success, flow or failure."""
    assert Status(code).is_rejected == (code in {Code.UNSCHEDULABLE, Code.UNRESOLVABLE, Code.PENDING})


def test_a_status_is_signed_once() -> None:
    """The plugin that decided stays named."""
    assert unschedulable("no").by("A").by("B").plugin == "A"


def test_a_refusal_has_its_first_author_and_a_success_none() -> None:
    """A success is one for all plugins; who refused first is the one to look at."""
    assert SUCCESS.by("A") is SUCCESS
    assert SKIP.by("A") is SKIP
    assert unschedulable("x").by("A").by("B") == Status(Code.UNSCHEDULABLE, ("x",), "A")
