"""Writes for claims, by the operator's own binder, are compared with what was recorded."""

from typing import Any

import pytest

from devices.builders import DRIVER
from plimsoll.framework import Registry
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.ports.resource_claims import FINALIZER
from recordings import replay
from recordings.scheduler import Case, situation

CLAIM = {"resource": "resourceclaims", "namespace": "default", "name": "mine"}
RESULT = {"request": "r", "driver": DRIVER, "pool": "gpu", "device": "d0"}
SELECTOR = {
    "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gpu"]}]}]
}
ALLOCATION = {"devices": {"results": [RESULT]}, "nodeSelector": SELECTOR}
STATUS = {
    "allocation": {**ALLOCATION, "allocationTimestamp": "*"},
    "reservedFor": [{"resource": "pods", "name": "pod", "uid": "u1"}],
}
PATCH = {
    "metadata": {"uid": "uid-mine"},
    "status": {"reservedFor": [{"$patch": "delete", "uid": "u1"}]},
}


def found(**recorded: Any) -> list[str]:
    """What differs for a pod with one claim, on one node with one device."""
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    given = {
        "nodes": [
            {
                "metadata": {"name": "gpu"},
                "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "9"}},
            }
        ],
        "pods": [],
        "resourceSlices": [
            {
                "metadata": {"name": "gpus"},
                "spec": {
                    "driver": DRIVER,
                    "nodeName": "gpu",
                    "pool": {"name": "gpu", "generation": 1, "resourceSliceCount": 1},
                    "devices": [{"name": "d0"}],
                },
            }
        ],
        "deviceClasses": [{"metadata": {"name": "gpu"}, "spec": {}}],
        "resourceClaims": [
            {
                "metadata": {"name": "mine", "namespace": "default", "uid": "uid-mine"},
                "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}},
            }
        ],
        "pod": {
            "metadata": {"name": "pod", "namespace": "default", "uid": "u1"},
            "spec": {
                "containers": [{"name": "c"}],
                "resourceClaims": [{"name": "gpu", "resourceClaimName": "mine"}],
            },
        },
    }
    dra = {
        "host": "gpu",
        "allocations": {"gpu": {"default/mine": ALLOCATION}},
        "writes": [
            {"verb": "update", **CLAIM, "finalizers": [FINALIZER]},
            {"verb": "update", **CLAIM, "subresource": "status", "status": STATUS},
        ],
        "unreserve": [
            {
                "verb": "patch",
                **CLAIM,
                "subresource": "status",
                "patch": PATCH,
                "patchType": "application/strategic-merge-patch+json",
            }
        ],
    }
    expected = {"result": "scheduled", "hosts": ["gpu"], "dra": dra | recorded}
    case = Case("devices", "devices-0", given, expected)
    compared = replay.compare(case, situation(case, Registry(IN_TREE), DEFAULT_PLUGINS))
    return [each.what for each in compared if each.plugin == "DynamicResources"]


def test_equal_writes_have_no_difference() -> None:
    """Finalizer, status, and the patch that takes the reservation back."""
    assert found() == []


@pytest.mark.parametrize(
    ("recorded", "different"),
    [
        ({"writes": []}, ["writes"]),
        ({"unreserve": []}, ["unreserve"]),
        ({"preBind": {"plugin": "DynamicResources", "code": "Wait", "reasons": []}}, ["preBind"]),
    ],
)
def test_other_writes_are_named(recorded: Any, different: list[str]) -> None:
    """Each kind by itself."""
    assert found(**recorded) == different


def test_a_binder_with_another_finalizer_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The production binder is what is compared."""
    monkeypatch.setattr("plimsoll.scheduling.devices.claim_writes.FINALIZER", "other")

    assert "writes" in found()
