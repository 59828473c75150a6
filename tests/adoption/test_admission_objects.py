"""Admission objects of a policy with ``adopt``: selectors, conditions, the canary's bound, and drift."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from pydantic import ValidationError

from plimsoll.adoption.admission_objects import admission_objects, uid_bound
from plimsoll.adoption.drift import drift
from plimsoll.api.v1alpha1 import SchedulingPolicy
from plimsoll.cli.callers.kyverno import kyverno_policy

NAMESPACES = {"include": ["shop"]}


def policy(**adopt: Any) -> SchedulingPolicy:
    """A policy that adopts pods."""
    spec = {"schedulerName": "plimsoll", "adopt": {"namespaces": NAMESPACES, **adopt}}
    return SchedulingPolicy.model_validate({"metadata": {"name": "web"}, "spec": {"scheduling": spec}})


def conditions(**adopt: Any) -> dict[str, str]:
    """The expressions, keyed by their names."""
    found = admission_objects(policy(**adopt), "plimsoll")[0]["spec"]["matchConditions"]
    return {each["name"]: each["expression"] for each in found}


def left_out(**adopt: Any) -> list[str]:
    """The names of the namespaces that are left out."""
    found = admission_objects(policy(**adopt), "plimsoll")[0]["spec"]["matchConstraints"]["namespaceSelector"]
    return [
        name for each in found["matchExpressions"] if each["operator"] == "NotIn" for name in each["values"]
    ]


@pytest.mark.parametrize(
    ("namespaces", "names"),
    [
        ({"include": ["shop"]}, ["kube-system", "plimsoll"]),
        ({"include": ["shop", "kube-system"]}, ["plimsoll"]),
        ({"include": ["kube-system", "plimsoll"]}, []),
        ({"exclude": ["shop"]}, ["kube-system", "plimsoll", "shop"]),
        ({"labelSelector": {"matchLabels": {"team": "a"}}}, ["kube-system", "plimsoll"]),
    ],
)
def test_the_system_and_our_own_namespace_are_left_out_unless_named(namespaces: Any, names: Any) -> None:
    assert left_out(namespaces=namespaces) == names


def test_daemon_sets_are_left_out_unless_named() -> None:
    assert "DaemonSet" in conditions()["is-not-of-a-daemon-set"]
    named = conditions(ownerKinds=["DaemonSet", "Job"])
    assert "is-not-of-a-daemon-set" not in named
    assert "['DaemonSet', 'Job']" in named["is-of-an-owner-kind"]


@pytest.mark.parametrize(("percentage", "bound"), [(1, "028f5c28"), (10, "19999999"), (50, "80000000")])
def test_a_canary_is_a_part_of_all_uids(percentage: int, bound: str) -> None:
    assert uid_bound(percentage) == bound
    assert bound in conditions(percentage=percentage)["is-of-the-canary"]
    assert "is-of-the-canary" not in conditions(percentage=100)


@pytest.mark.parametrize(
    ("adopt", "said"),
    [
        ({"namespaces": {}}, "say whose pods are adopted"),
        ({"ownerKinds": ["Deployment"]}, "ReplicaSet for Deployments"),
        ({"percentage": 0}, "greater than or equal to 1"),
    ],
)
def test_what_a_policy_cannot_say(adopt: Any, said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        policy(**adopt)


def edited(objects: list[Any], place: int, *path: Any, value: Any) -> list[Any]:
    """The objects with one value changed."""
    changed = copy.deepcopy(objects)
    at = changed[place]
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return changed


def test_drift_is_named_by_its_field_and_defaults_do_not_count() -> None:
    wanted = admission_objects(policy(), "plimsoll")

    assert drift(wanted, wanted) == ""
    assert drift(wanted, edited(wanted, 0, "spec", "matchConstraints", "objectSelector", value=None)) == ""
    assert drift(wanted, edited(wanted, 0, "spec", "variables", value=[])) == ""
    assert drift(wanted, edited(wanted, 0, "metadata", "labels", value={})) == ""
    changes: list[tuple[int, tuple[Any, ...], Any]] = [
        (0, ("spec", "failurePolicy"), "Fail"),
        (0, ("spec", "variables"), [{"name": "x"}]),
        (0, ("spec", "matchConditions"), []),
        (1, ("spec", "paramRef", "name"), "other"),
    ]
    for place, path, value in changes:
        said = f"{wanted[place]['kind']} plimsoll-adopt-web has another {'.'.join(path)} than"
        assert drift(wanted, edited(wanted, place, *path, value=value)).startswith(said)
    assert "spec.matchConditions[4].expression" in drift(
        wanted, edited(wanted, 0, "spec", "matchConditions", 4, "expression", value="true")
    )
    assert drift(wanted, [wanted[0], None]).endswith("plimsoll-adopt-web does not exist")


def test_kyverno_has_the_same_conditions_and_no_canary() -> None:
    found = kyverno_policy(policy(podSelector={"matchLabels": {"tier": "web"}}), "plimsoll")

    (rule,) = found["spec"]["rules"]
    assert rule["match"]["any"][0]["resources"]["selector"] == {"matchLabels": {"tier": "web"}}
    assert rule["context"][0]["apiCall"]["urlPath"].endswith("/schedulingpolicies/web")
    values = [each["value"] for each in rule["preconditions"]["all"]]
    assert values == [None, False, "True", "default-scheduler", "", ["DaemonSet"]]
    with pytest.raises(ValueError, match="Kyverno cannot adopt 10 %"):
        kyverno_policy(policy(percentage=10), "plimsoll")
