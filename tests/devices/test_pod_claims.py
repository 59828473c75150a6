"""Answers about the claims of a pod: devices that failed to be prepared, and alternatives that were taken."""

from typing import Any

import pytest

from devices.builders import a_claim, exactly
from plimsoll.devices.pod_claims import are_unavailable, points_of_allocated, unprepared
from plimsoll.model.kinds.resource_claim import ResourceClaim

READY, BROKEN, OTHER = "Attached", "AttachFailed", "Unrelated"
NOW, BEFORE = "2026-01-01T00:00:00Z", 1_767_225_600.0


def reported(*devices: dict[str, str]) -> ResourceClaim:
    """A claim with a device for each report, which says which conditions are true or false, in order."""
    results = [
        {
            "request": "r",
            "driver": "d",
            "pool": "p",
            "device": f"d{at}",
            "bindingConditions": [READY],
            "bindingFailureConditions": [BROKEN],
        }
        for at in range(len(devices))
    ]
    states = [
        {
            "driver": "d",
            "pool": "p",
            "device": f"d{at}",
            "conditions": [
                {"type": kind, "status": status, "reason": f"{kind}-{at}", "message": f"of {kind}"}
                for kind, status in each.items()
            ],
        }
        for at, each in enumerate(devices)
        if each
    ]
    return a_claim(
        status={
            "allocation": {"devices": {"results": results}, "allocationTimestamp": NOW},
            "devices": states,
        }
    )


FAILED = 'device binding failed: claim=default/mine, reason=AttachFailed-{at}, message="of AttachFailed"'
LATE = "device binding timeout: claim=default/mine"


@pytest.mark.parametrize(
    ("devices", "expected"),
    [
        pytest.param([{READY: "True"}, {READY: "True"}], ("", ""), id="prepared"),
        pytest.param([{READY: "True"}, {}], ("", LATE), id="one-not-reported"),
        pytest.param([{READY: "False"}, {READY: "True"}], ("", LATE), id="the-first-not-yet"),
        pytest.param([{BROKEN: "False", READY: "True"}], ("", ""), id="a-failure-that-is-over"),
        pytest.param([{OTHER: "True", BROKEN: "True"}], (FAILED.format(at=0), ""), id="failed-after-another"),
        pytest.param([{READY: "False", BROKEN: "True"}], (FAILED.format(at=0), ""), id="failed"),
        pytest.param([{}, {BROKEN: "True"}], (FAILED.format(at=1), ""), id="the-second-failed"),
        pytest.param([{READY: "True", BROKEN: "True"}], (FAILED.format(at=0), ""), id="ready-and-failed"),
    ],
)
def test_devices_that_are_not_prepared(devices: list[dict[str, str]], expected: tuple[str, str]) -> None:
    """A failure is said in the driver's words, whatever else it reports; waiting is said without one."""
    assert unprepared(reported(*devices)) == expected


@pytest.mark.parametrize(
    ("devices", "late", "in_time"),
    [
        pytest.param([{READY: "True"}], False, False, id="prepared"),
        pytest.param([{READY: "True"}, {}], True, False, id="not-yet"),
        pytest.param([{}, {BROKEN: "True"}], True, False, id="late-before-it-failed"),
        pytest.param([{BROKEN: "True"}, {}], True, True, id="failed"),
    ],
)
def test_devices_are_unavailable_when_they_failed_or_take_too_long(
    devices: list[dict[str, str]], late: bool, in_time: bool
) -> None:
    """The time counts from the allocation."""
    assert are_unavailable(reported(*devices), BEFORE + 0.1) is late
    assert are_unavailable(reported(*devices), BEFORE) is in_time


def taking(*names: str) -> ResourceClaim:
    """A claim of two lists of three alternatives, with devices for these."""
    alternatives: list[dict[str, Any]] = [{"name": name, **exactly()} for name in "abc"]
    requests = [{"name": name, "firstAvailable": alternatives} for name in ("one", "two")]
    results = [{"request": name} for name in names]
    return a_claim("mine", *requests, status={"allocation": {"devices": {"results": results}}})


@pytest.mark.parametrize(
    ("names", "points"),
    [
        pytest.param([], 0, id="none"),
        pytest.param(["one/a"], 8, id="first"),
        pytest.param(["one/c", "two/b"], 6 + 7, id="of-both-lists"),
        pytest.param(["one/a", "one/a", "two/a"], 16, id="several-devices"),
        pytest.param(["one/b", "one/c"], 7, id="the-best-counts"),
        pytest.param(["one", "three/a"], 0, id="of-no-list"),
    ],
)
def test_earlier_alternatives_count_more(names: list[str], points: int) -> None:
    """Eight for the first one of a list, seven for the second."""
    assert points_of_allocated(taking(*names)) == points
    assert points_of_allocated(a_claim()) == 0
