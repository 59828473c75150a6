"""Registrations cover events, and events have upstream's names."""

from typing import Any

import pytest

from plimsoll.framework import ActionType, ClusterEvent, EventResource, EventWithHint

NODE, POD, ASSIGNED, WAITING = (
    EventResource.NODE,
    EventResource.POD,
    EventResource.ASSIGNED_POD,
    EventResource.UNSCHEDULABLE_POD,
)
LABEL, TAINT = ActionType.UPDATE_NODE_LABEL, ActionType.UPDATE_NODE_TAINT


@pytest.mark.parametrize(
    ("resource", "actions", "happens"),
    [
        (NODE, ActionType.ADD | LABEL, (NODE, LABEL)),
        (NODE, ActionType.UPDATE, (NODE, TAINT)),
        (POD, ActionType.ADD, (ASSIGNED, ActionType.ADD)),
        (POD, ActionType.UPDATE, (WAITING, ActionType.UPDATE_POD_OTHER)),
        (EventResource.ANY, ActionType.ALL, ("Namespace", ActionType.UPDATE)),
        ("Namespace", ActionType.ADD | ActionType.UPDATE, ("Namespace", ActionType.UPDATE)),
    ],
)
def test_a_registration_covers(
    resource: str | EventResource, actions: ActionType, happens: tuple[Any, ActionType]
) -> None:
    """The same resource, and an action among the registered ones."""
    assert EventWithHint(resource, actions).covers(*happens)


@pytest.mark.parametrize(
    ("resource", "actions", "happens"),
    [
        (NODE, ActionType.ADD | LABEL, (NODE, TAINT)),
        (NODE, LABEL, (NODE, ActionType.UPDATE)),
        (ASSIGNED, ActionType.ADD, (WAITING, ActionType.ADD)),
        (NODE, ActionType.ALL, (ASSIGNED, ActionType.ADD)),
        ("Namespace", ActionType.ADD, ("Service", ActionType.ADD)),
    ],
)
def test_a_registration_does_not_cover(
    resource: str | EventResource, actions: ActionType, happens: tuple[Any, ActionType]
) -> None:
    """Another resource, or an action beyond the registered ones."""
    assert not EventWithHint(resource, actions).covers(*happens)


def test_events_are_called_as_upstream_calls_them() -> None:
    """The label of kube-scheduler's metrics."""
    assert ClusterEvent(ASSIGNED, ActionType.DELETE).label == "AssignedPodDelete"
    assert ClusterEvent(NODE, LABEL).label == "NodeUpdateNodeLabel"
    assert ClusterEvent("CSINode", ActionType.UPDATE).label == "CSINodeUpdate"
    assert ClusterEvent(WAITING, ActionType.UPDATE_POD_OTHER).label == "UnschedulablePodUpdate"
    assert (ActionType.ADD | ActionType.UPDATE).label == "Add/Update"


def test_what_follows_from_a_change_is_computed_once() -> None:
    """However many pods are asked about it."""
    change, built = ClusterEvent(NODE, ActionType.ADD), []

    for _ in range(3):
        change.memo("amounts", lambda: built.append(1) or len(built))  # type: ignore[func-returns-value, redundant-expr] # mypy does not see the change

    assert built == [1]
