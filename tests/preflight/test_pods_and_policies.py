"""Judging pods that no scheduler serves, and the status of policies."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from plimsoll.check.policies import judged_forecasts, judged_policies
from plimsoll.model.kinds.pod import Pod
from plimsoll.preflight.findings import Certainty, Finding, Level
from plimsoll.preflight.policy_conditions import at_work, claims_of
from plimsoll.preflight.unserved_pods import judged_pods, waiting_names
from plimsoll.testing.builders import a_pod

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def waiting(name: str, *, age_s: int = 300, **more: Any) -> Pod:
    """A pending pod."""
    created = (NOW - timedelta(seconds=age_s)).isoformat().replace("+00:00", "Z")
    return a_pod(f"of-{name}", schedulerName=name, metadata={"creationTimestamp": created}, **more)


def policy(
    name: str,
    scheduler: str = "",
    conditions: Mapping[str, tuple[str, str, str]] | None = None,
    *,
    suspend: bool = False,
) -> Any:
    """A policy with conditions: status, reason, message."""
    spec: dict[str, Any] = {"suspend": suspend}
    if scheduler:
        spec["scheduling"] = {"schedulerName": scheduler}
    return {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "SchedulingPolicy",
        "metadata": {"name": name, "generation": 2},
        "spec": spec,
        "status": {
            "conditions": [
                {
                    "type": kind,
                    "status": status,
                    "reason": reason,
                    "message": message,
                    "observedGeneration": 2,
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }
                for kind, (status, reason, message) in (conditions or {}).items()
            ]
        },
    }


FINE = {
    "Accepted": ("True", "Valid", "accepted"),
    "Ready": ("True", "Serving", "pods are placed"),
    "Degraded": ("False", "AsExpected", "all is well"),
}


def judged(
    pods: list[Pod], documents: list[Any], *, placed: tuple[str, ...] = (), leads: bool = True
) -> list[Finding]:
    """Findings about pods."""
    names = waiting_names(pods, NOW.timestamp())
    return list(judged_pods(names, claims_of(documents), placed, leads=leads))


def test_a_name_that_no_scheduler_serves() -> None:
    """With a suggestion; it is likely only, for a scheduler may be out of sight."""
    (finding,) = judged([waiting("plimsol")], [policy("all", "plimsoll", FINE)])

    assert (finding.level, finding.certainty) == (Level.WARNING, Certainty.LIKELY)
    assert finding.subject == "schedulerName plimsol"
    assert "1 pod waits for a scheduler (default/of-plimsol)" in finding.message
    assert 'did you mean "plimsoll"?' in finding.message


@pytest.mark.parametrize(
    ("pods", "placed"),
    [
        ([waiting("other")], ("other",)),
        ([waiting("young", age_s=10)], ()),
        ([waiting("default-scheduler")], ()),
        ([waiting("ours")], ()),
        ([waiting("gated", schedulingGates=[{"name": "wait"}])], ()),
        (
            [
                waiting(
                    "told",
                    status={
                        "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
                    },
                )
            ],
            (),
        ),
    ],
)
def test_pods_that_wait_for_a_reason(pods: list[Pod], placed: tuple[str, ...]) -> None:
    """Another scheduler was seen, they have not waited for long, or nothing should place them."""
    (finding,) = judged(pods, [policy("all", "ours", FINE)], placed=placed)

    assert finding.level is Level.OK


@pytest.mark.parametrize(
    ("pods", "said"),
    [
        (["plimsol"], "1 pod younger than 60 s is not judged yet"),
        (["plimsol", "plimsoll"], "2 pods younger than 60 s are not judged yet"),
        (["ours"], "every pending pod names a scheduler that serves it"),
        (["other"], "every pending pod names a scheduler that serves it"),
    ],
)
def test_pods_that_are_too_young_to_be_judged_are_counted(pods: list[str], said: str) -> None:
    """Only those of schedulers of which nothing is known."""
    young = [waiting(name, age_s=10) for name in pods]
    ours = policy("all", "ours", FINE)

    (finding,) = judged(young, [ours], placed=("other",))

    assert (finding.level, finding.message) == (Level.OK, said)
    assert (finding.certainty is Certainty.OPEN) is ("young" in said)
    assert len(judged([*young, waiting("wrong")], [ours], placed=("other",))) == 1 + ("young" in said)


def test_a_policy_that_does_not_serve_its_name() -> None:
    """It is known why."""
    suspended, refused = (
        policy("a", "one", suspend=True),
        policy("b", "two", {"Accepted": ("False", "Bad", "no such plugin")}),
    )

    first, second = judged([waiting("one"), waiting("two")], [suspended, refused])

    assert "policy a has schedulerName" in first.message.lower().replace("schedulername", "schedulerName")
    assert "spec.suspend is true" in first.message
    assert "no such plugin" in second.message
    assert (first.remedy, first.certainty) == ("correct policy a", Certainty.CERTAIN)


def test_pods_of_a_policy_while_no_operator_leads() -> None:
    """They wait for the operator."""
    (finding,) = judged([waiting("ours")], [policy("all", "ours", FINE)], leads=False)

    assert finding.message.endswith("policy all serves it, and no operator leads")


@pytest.mark.parametrize(
    ("conditions", "level", "said"),
    [
        (FINE, Level.OK, "pods are placed"),
        (
            {**FINE, "Accepted": ("False", "InvalidSpec", "spec.x: no")},
            Level.ERROR,
            "Accepted is False, InvalidSpec: spec.x: no",
        ),
        (
            {**FINE, "Ready": ("False", "NotAllowed", "may not")},
            Level.ERROR,
            "Ready is False, NotAllowed: may not",
        ),
        (
            {**FINE, "Degraded": ("True", "RunFailed", "it crashed")},
            Level.WARNING,
            "Degraded is True, RunFailed: it crashed",
        ),
        (
            {**FINE, "Paused": ("True", "Stopped", "all moves are stopped by admin")},
            Level.WARNING,
            "Paused is True, Stopped: all moves are stopped by admin",
        ),
        ({}, Level.WARNING, "no operator has looked at it"),
    ],
)
def test_the_conditions_of_a_policy(
    conditions: dict[str, tuple[str, str, str]], level: Level, said: str
) -> None:
    """With their sentences."""
    (finding,) = judged_policies([policy("a", "one", conditions)], leads=True)

    assert (finding.level, finding.message) == (level, said)


def test_one_sentence_is_said_once() -> None:
    """Ready and Degraded often say the same."""
    same = ("NotAllowed", "may not create pods/binding")
    document = policy("a", "one", {**FINE, "Ready": ("False", *same), "Degraded": ("True", *same)})

    assert [each.level for each in judged_policies([document], leads=True)] == [Level.ERROR]


def test_an_old_status() -> None:
    """About an earlier spec, or of an operator that is gone."""
    changed = policy("a", "one", FINE)
    refused = policy("b", "two", {**FINE, "Accepted": ("False", "InvalidSpec", "it was wrong")})
    for each in (changed, refused):
        each["metadata"]["generation"] = 3

    of_earlier, of_refused = judged_policies([changed, refused], leads=True)
    (of_gone,) = judged_policies([policy("a", "one", FINE)], leads=False)

    assert of_earlier.message == of_refused.message == "no operator has looked at it since it was changed"
    assert of_gone.message == "pods are placed (an old status: no operator leads)"


def test_what_is_at_work() -> None:
    """Neither what is suspended, nor what cannot be read."""
    bad = policy("bad")
    bad["spec"] = {"scheduling": {"schedulerName": 5}}

    assert [each.metadata.name for each in at_work([policy("a", suspend=True), bad, policy("b")])] == ["b"]
    ((level, message),) = [(each.level, each.message) for each in judged_policies([bad], leads=True)]
    assert level is Level.ERROR
    assert "spec.scheduling.schedulerName" in message


def test_a_profile_of_another_scheduler_is_described_or_assumed() -> None:
    """Only schedulers whose pods a policy moves matter; one that does not say so is assumed to have none."""
    moving = policy("moving")
    moving["spec"] |= {"rebalancing": {}, "scope": {"otherSchedulers": ["theirs", "unknown", "served"]}}
    paused = policy("paused", suspend=True)
    paused["spec"] |= {"rebalancing": {}, "scope": {"otherSchedulers": ["never"]}}
    others = policy("profile", "theirs", suspend=True), policy("ours", "served")

    found = {each.subject: each for each in judged_forecasts([moving, paused, *others])}

    assert {subject: (each.message, each.certainty) for subject, each in found.items()} == {
        "forecasts for theirs": (
            "its pods are expected where the profile of suspended policy profile puts them",
            Certainty.CERTAIN,
        ),
        "forecasts for unknown": (
            "its profile is assumed, not known: that of kube-scheduler without a configuration",
            Certainty.LIKELY,
        ),
    }
