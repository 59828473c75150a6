"""Findings about policies that adopt pods, and about objects that are left of them."""

from __future__ import annotations

from typing import Any

from plimsoll.access.rights import READ_ADMISSION
from plimsoll.adoption.admission_objects import admission_objects
from plimsoll.api.v1alpha1 import SchedulingPolicy
from plimsoll.check.adoption import AdoptionState, judged_adoption
from plimsoll.preflight.findings import Level, Unread

ADOPT = {"namespaces": {"include": ["shop"]}}


def policy(name: str = "web", ready: str = "True", *, adopts: bool = True, **spec: Any) -> dict[str, Any]:
    """A policy as the API server has it."""
    moment = "2026-01-01T00:00:00Z"
    told = {"type": "Ready", "status": ready, "reason": "R", "message": "why", "lastTransitionTime": moment}
    scheduling = {"schedulerName": name, **({"adopt": ADOPT} if adopts else {})}
    return {
        "metadata": {"name": name},
        "spec": {"scheduling": scheduling, **spec},
        "status": {"conditions": [told]},
    }


def objects(name: str = "web") -> list[Any]:
    """The admission objects of a policy."""
    return admission_objects(SchedulingPolicy.model_validate(policy(name)), "plimsoll")


def said(found: Any, *policies: Any, leads: bool = True, namespaces: Any = ("plimsoll",)) -> list[Any]:
    """Level, message and remedy of each finding."""
    judged = judged_adoption(found, policies, namespaces, leads=leads)
    return [(each.level, each.message, each.remedy) for each in judged]


def test_what_is_applied_adopts_pods() -> None:
    found = said(AdoptionState("v1", objects()), policy(), policy("plain", adopts=False))

    assert found == [(Level.OK, "new pods get schedulerName web", "")]


def test_what_is_missing_or_differs_is_said_with_the_command() -> None:
    changed = objects()
    changed[0]["spec"]["failurePolicy"] = "Fail"
    for found in ([], objects()[:1], changed):
        ((level, message, remedy),) = said(AdoptionState("v1", found), policy())
        assert level is Level.WARNING
        assert "MutatingAdmissionPolicy" in message
        assert remedy == "plimsoll adopt web --apply"


def test_a_policy_that_is_not_ready_adopts_none() -> None:
    ((level, message, _),) = said(AdoptionState("v1", objects()), policy(ready="False"), leads=False)

    assert (level, message) == (Level.WARNING, "new pods keep default-scheduler: why")


def test_a_policy_that_adopts_pods_for_a_dead_operator_is_an_error() -> None:
    ((level, message, remedy),) = said(AdoptionState("v1", objects()), policy(), leads=False)

    assert level is Level.ERROR
    assert message == "no operator leads, and new pods are still adopted: they wait"
    assert remedy.startswith("plimsoll pause web")


def test_what_is_left_of_a_policy_is_named_once() -> None:
    gone = AdoptionState("v1", objects("gone"))
    remedy = "plimsoll adopt gone --remove"

    assert [each[2] for each in said(gone)] == [remedy]
    assert [each[2] for each in said(gone, policy("gone", adopts=False))] == [remedy]
    suspended = said(gone, policy("gone", suspend=True))
    assert suspended == [(Level.OK, "new pods keep default-scheduler: spec.suspend is true", "")]


def test_what_cannot_be_read_is_said_only_where_it_matters() -> None:
    unread = Unread(READ_ADMISSION[0], "", 403, "forbidden")

    assert said(unread, policy("plain", adopts=False)) == []
    assert said(unread, policy())[0][1].startswith("not checked: you may not")
    assert "has no MutatingAdmissionPolicy" in said(AdoptionState(), policy())[0][1]
    assert "namespace is not known" in said(AdoptionState("v1", objects()), policy(), namespaces=())[0][1]
