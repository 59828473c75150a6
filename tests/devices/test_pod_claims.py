"""Answers about the claims of a pod: devices that failed to be prepared, and alternatives that were taken."""

from typing import Any

import pytest

from devices.builders import a_claim, exactly
from plimsoll.devices.pod_claims import (
    ClaimProblem,
    are_unavailable,
    claims_in_stead,
    claims_of,
    points_of_allocated,
    shared_keys,
    unprepared,
    user_of,
)
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.pod_group import CorePodGroup
from plimsoll.model.kinds.resource_claim import Consumer, ResourceClaim
from plimsoll.testing.builders import a_pod

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


NAMED = {"name": "gpu", "resourceClaimName": "team"}
MADE = {"name": "gpu", "resourceClaimTemplateName": "t"}


def groups(*claims: Any, uid: str = "uid-train") -> dict[str, CorePodGroup]:
    """A PodGroup with claims."""
    document = {
        "metadata": {"name": "train", "namespace": "default", "uid": uid},
        "spec": {"schedulingPolicy": {"basic": {}}, "resourceClaims": list(claims)},
    }
    group = convert(CorePodGroup, document)
    return {group.group_key: group}


def a_member(claim: Any, *, made: bool = True, group: str = "train") -> Pod:
    """A pod of the group with a claim, which exists if it was made."""
    statuses = [{"name": "gpu", "resourceClaimName": "team"}] if made else []
    return a_pod(
        "p",
        schedulingGroup={"podGroupName": group},
        resourceClaims=[claim],
        status={"resourceClaimStatuses": statuses},
    )


def of_group(group: str = "train", uid: str = "uid-train") -> dict[str, ResourceClaim]:
    """A claim that was made for a group."""
    owner = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "name": group, "uid": uid}
    metadata = {"name": "team", "namespace": "default", "ownerReferences": [{**owner, "controller": True}]}
    claim = a_claim("team", metadata=metadata)
    return {claim.key: claim}


@pytest.mark.parametrize(
    ("written", "listed", "is_groups"),
    [
        (NAMED, [NAMED], True),
        (MADE, [{**MADE, "name": "net"}, MADE], True),
        (NAMED, [], False),
        (NAMED, [{**NAMED, "name": "net"}], False),
        (NAMED, [MADE], False),
        (MADE, [{**MADE, "resourceClaimTemplateName": "other"}], False),
    ],
)
def test_a_claim_is_the_group_s_where_name_and_source_are(
    written: Any, listed: list[Any], is_groups: bool
) -> None:
    pod, claim = a_member(written), a_claim("team")
    group = Consumer(api_group="scheduling.k8s.io", resource="podgroups", name="train", uid="uid-train")
    own = Consumer(resource="pods", name="p", uid=pod.uid)

    assert user_of(claim, pod, groups(*listed)) == (group if is_groups else own)
    assert user_of(claim, pod, {}) == own
    assert user_of(a_claim("another"), pod, groups(*listed)) == own


def test_a_claim_made_for_the_group_is_each_member_s() -> None:
    """Members share it, and so will the replacement of one."""
    claims, pod = of_group(), a_member(MADE)

    assert claims_of(pod, claims, groups(MADE)) == tuple(claims.values())
    assert claims_in_stead(pod, claims, groups(MADE)) == tuple(claims.values())
    assert shared_keys(pod, claims) == ("default/team",)
    assert shared_keys(pod, {}) == ()


@pytest.mark.parametrize(
    ("pod", "claims", "message"),
    [
        (
            a_member(MADE, made=False),
            of_group(),
            'pod "default/p": ResourceClaim "gpu" of PodGroup default/train not created yet',
        ),
        (
            a_member(MADE),
            of_group(uid="earlier"),
            "ResourceClaim default/team was not created for PodGroup default/train (PodGroup is not owner)",
        ),
        (
            a_member(MADE),
            of_group("other"),
            "ResourceClaim default/team was not created for Pod default/p (Pod is not owner)",
        ),
        (
            a_member(MADE, group="other"),
            of_group(),
            "ResourceClaim default/team was not created for Pod default/p (Pod is not owner)",
        ),
    ],
)
def test_a_claim_that_is_not_the_group_s_is_said(
    pod: Pod, claims: dict[str, ResourceClaim], message: str
) -> None:
    with pytest.raises(ClaimProblem) as problem:
        claims_of(pod, claims, groups(MADE))

    assert str(problem.value) == message
