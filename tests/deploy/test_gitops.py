"""Executes the checks of contrib/gitops by which Argo CD and Flux judge our kinds."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import yaml
from cel_expr_python import cel
from cel_expr_python.ext import ext_optional
from lupa.lua51 import LuaRuntime  # Argo CD's interpreter is of Lua 5.1

from deploy.tools import ROOT
from plimsoll.api.v1alpha1 import KINDS

GITOPS = ROOT / "contrib/gitops"
PREFIX = "resource.customizations.health.plimsoll.dev_"

#: Kinds that people write; Eviction records are the operator's.
WRITTEN = {each.definition.kind for each in KINDS} - {"Eviction"}

Obj = dict[str, Any]


@cache
def lua() -> dict[str, str]:
    """The checks of Argo CD by kind."""
    config = yaml.safe_load((GITOPS / "argocd-cm.yaml").read_text("utf-8"))
    return {name.removeprefix(PREFIX): text for name, text in config["data"].items()}


@cache
def flux() -> dict[str, Obj]:
    """The checks of Flux by kind."""
    (policies,) = [
        each
        for each in yaml.safe_load_all((GITOPS / "flux.yaml").read_text("utf-8"))
        if "healthCheckExprs" in each["spec"]
    ]
    return {each["kind"]: each for each in policies["spec"]["healthCheckExprs"]}


def as_argo_says(obj: Obj) -> str:
    """The health of an object, as Argo CD evaluates it: Lua about ``obj``."""
    runtime = LuaRuntime(register_eval=False, unpack_returned_tuples=True)
    check = runtime.execute(f"return function(obj)\n{lua()[obj['kind']]}\nend")
    found = check(runtime.table_from(obj, recursive=True))
    assert isinstance(found["message"], str)
    return str(found["status"])


def as_flux_says(obj: Obj) -> str:
    """The status of an object, as Flux evaluates it: in progress, failed, current, or in progress otherwise.

    An expression about a field that is missing cannot be evaluated; Flux waits then.
    """
    names = ("apiVersion", "kind", "metadata", "spec", "status")
    environment = cel.NewEnv(
        variables=dict.fromkeys(names, cel.Type.DYN), extensions=[ext_optional.ExtOptional()]
    )
    given = {name: obj[name] for name in names if name in obj}
    for said in ("inProgress", "failed", "current"):
        expression = flux()[obj["kind"]].get(said)
        if expression is None:
            continue
        try:
            result = environment.compile(expression).eval(data=given)
            if result.type() == cel.Type.ERROR:
                return "inProgress"
            if result.value():
                return said
        except (RuntimeError, ValueError):
            return "inProgress"
    return "inProgress"


def conditions(**given: str) -> list[Obj]:
    """Conditions by type, each with a status and a reason after a slash."""
    found = []
    for kind, text in given.items():
        status, _, reason = text.partition("/")
        found.append({"type": kind, "status": status, "reason": reason or "Why", "message": "a sentence"})
    return found


def a_policy(*, suspend: bool = False, generation: int = 3, **given: str) -> Obj:
    """A policy of generation 3 whose status is of that generation."""
    status = {"observedGeneration": generation, "conditions": conditions(**given)}
    return {"kind": "SchedulingPolicy", "spec": {"suspend": suspend}, "status": status}


def of_phase(kind: str, phase: str) -> Obj:
    """An object with a phase."""
    return {"kind": kind, "spec": {}, "status": {"observedGeneration": 3, "phase": phase}}


#: By what it is: the object, Argo CD's word, Flux's word.
HEALTH: dict[str, tuple[Obj, str, str]] = {
    "a new policy": ({"kind": "SchedulingPolicy", "spec": {}}, "Progressing", "inProgress"),
    "a policy that works": (
        a_policy(Accepted="True", Ready="True", Degraded="False"),
        "Healthy",
        "current",
    ),
    "a change that is not judged yet": (
        a_policy(generation=2, Accepted="True", Ready="True", Degraded="False"),
        "Progressing",
        "inProgress",
    ),
    "a spec that is not accepted": (a_policy(Accepted="False", Ready="True"), "Degraded", "failed"),
    "a missing right": (a_policy(Accepted="True", Ready="False/NotAllowed"), "Degraded", "failed"),
    "something fails": (a_policy(Accepted="True", Ready="True", Degraded="True"), "Degraded", "failed"),
    "suspended": (
        a_policy(suspend=True, Accepted="True", Ready="False/Suspended", Degraded="False"),
        "Suspended",
        "current",
    ),
    "paused": (
        a_policy(Accepted="True", Ready="True", Degraded="False", Paused="True"),
        "Suspended",
        "current",
    ),
    "a new rule": ({"kind": "RebalancingRule", "spec": {}}, "Progressing", "inProgress"),
    "a rule": (
        {
            "kind": "RebalancingRule",
            "status": {"observedGeneration": 3, "conditions": conditions(Active="True")},
        },
        "Healthy",
        "current",
    ),
    "a malformed rule": (
        {
            "kind": "RebalancingRule",
            "status": {"observedGeneration": 3, "conditions": conditions(Active="False")},
        },
        "Degraded",
        "failed",
    ),
    "a maintenance": (of_phase("NodeMaintenance", "Draining"), "Progressing", "inProgress"),
    "a maintenance that waits": (of_phase("NodeMaintenance", "Blocked"), "Progressing", "inProgress"),
    "drained": (of_phase("NodeMaintenance", "Drained"), "Healthy", "current"),
    "stopped": (of_phase("NodeMaintenance", "Stopped"), "Degraded", "failed"),
    "expired": (of_phase("NodeMaintenance", "Expired"), "Degraded", "failed"),
    "a suspended maintenance": (of_phase("NodeMaintenance", "Suspended"), "Suspended", "current"),
    "a group that starts": (of_phase("PodGroup", "Scheduling"), "Progressing", "inProgress"),
    "a group that runs": (of_phase("PodGroup", "Running"), "Healthy", "current"),
    "a group that failed": (of_phase("PodGroup", "Failed"), "Degraded", "failed"),
}


@pytest.mark.parametrize("case", HEALTH)
def test_both_tools_say_what_the_status_says(case: str) -> None:
    """Lua by an interpreter of 5.1, CEL by the library of the development cluster."""
    obj, argo, of_flux = HEALTH[case]
    obj = {"apiVersion": "plimsoll.dev/v1alpha1", "metadata": {"name": "x", "generation": 3}, **obj}

    assert as_argo_says(obj) == argo
    assert as_flux_says(obj) == of_flux


def test_every_kind_that_people_write_has_checks() -> None:
    """A new kind needs them as well."""
    assert lua().keys() == flux().keys() == WRITTEN
    assert {obj["kind"] for obj, _, _ in HEALTH.values()} == WRITTEN


def test_definitions_come_before_the_operator_and_policies_after_it() -> None:
    """By waves in Argo CD, by dependencies in Flux; definitions are never pruned."""
    applications = [*yaml.safe_load_all((GITOPS / "argocd-applications.yaml").read_text("utf-8"))]
    waves = [int(each["metadata"]["annotations"]["argocd.argoproj.io/sync-wave"]) for each in applications]
    layers = [*yaml.safe_load_all((GITOPS / "flux.yaml").read_text("utf-8"))]
    names = [each["metadata"]["name"] for each in layers]

    assert waves == [0, 1, 2]
    assert [each["metadata"]["name"] for each in applications] == names
    assert [each["spec"].get("dependsOn", []) for each in layers] == [
        [],
        *([{"name": each}] for each in names[:2]),
    ]
    assert all("ServerSideApply=true" in each["spec"]["syncPolicy"]["syncOptions"] for each in applications)
    assert applications[0]["spec"]["syncPolicy"]["automated"]["prune"] is False
    assert layers[0]["spec"]["prune"] is False
