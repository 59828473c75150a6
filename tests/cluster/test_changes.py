"""Updates of pods as the plugins hear of them: each change has its bit."""

from typing import Any

import pytest

from plimsoll.cluster.changes import pod_changes
from plimsoll.framework.queueing import ActionType
from plimsoll.model.kinds.pod_info import Templates
from plimsoll.testing.builders import a_pod

GATES: Any = [{"name": "a"}, {"name": "b"}]


@pytest.mark.parametrize(
    ("before", "after", "bits"),
    [
        ({}, {}, {ActionType.UPDATE_POD_OTHER}),
        ({}, {"labels": {"a": "b"}}, {ActionType.UPDATE_POD_LABEL}),
        ({"schedulingGates": GATES}, {}, {ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED}),
        ({"schedulingGates": GATES}, {"schedulingGates": GATES[:1]}, {ActionType.UPDATE_POD_OTHER}),
        ({}, {"tolerations": [{"operator": "Exists"}]}, {ActionType.UPDATE_POD_TOLERATION}),
        ({"cpu": "2"}, {"cpu": "1"}, {ActionType.UPDATE_POD_SCALE_DOWN}),
        ({"cpu": "1"}, {"cpu": "2"}, {ActionType.UPDATE_POD_OTHER}),
        (
            {},
            {"status": {"resourceClaimStatuses": [{"name": "c", "resourceClaimName": "p-c"}]}},
            {ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM},
        ),
        (
            {"schedulingGates": GATES, "cpu": "2"},
            {"cpu": "1"},
            {ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, ActionType.UPDATE_POD_SCALE_DOWN},
        ),
    ],
)
def test_each_change_of_a_pod_has_its_bit(
    before: dict[str, Any], after: dict[str, Any], bits: set[ActionType]
) -> None:
    """And one that no bit is for, that of all others."""
    templates = Templates()

    found = pod_changes(templates.info(a_pod("p", **before)), templates.info(a_pod("p", **after)))

    assert set(found) == bits
