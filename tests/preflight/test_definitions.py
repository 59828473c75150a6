"""Installed CustomResourceDefinitions against those of this version."""

import copy
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest

from plimsoll.api.crds import crd
from plimsoll.api.v1alpha1 import KINDS
from plimsoll.api.v1alpha1.eviction import Eviction
from plimsoll.api.v1alpha1.pod_group import PodGroupResource
from plimsoll.kube.access_reviews import right_of
from plimsoll.preflight.definitions import _changed, _missing, judged_definitions, names
from plimsoll.preflight.findings import Finding, Level, Unread

Obj = dict[str, Any]
POLICIES = "schedulingpolicies.plimsoll.dev"


@cache
def _generated() -> dict[str, Obj]:
    conditions = [{"type": "NamesAccepted", "status": "True"}, {"type": "Established", "status": "True"}]
    return {kind.definition.name: {**crd(kind), "status": {"conditions": conditions}} for kind in KINDS}


def installed() -> dict[str, Obj]:
    """All of ours, as a server has them."""
    return copy.deepcopy(_generated())


def schema(document: Obj) -> Obj:
    """The schema of a spec."""
    found: Obj = document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return found


def judged(change: Callable[[Obj], object]) -> Finding:
    """The finding about the policies' definition after a change."""
    found = installed()
    change(found[POLICIES])
    return {each.subject: each for each in judged_definitions(found)}[POLICIES]


def test_what_was_generated_is_all_right() -> None:
    """One finding for each kind."""
    findings = list(judged_definitions(installed()))

    assert [each.subject for each in findings] == list(names())
    assert {each.level for each in findings} == {Level.OK}


def test_other_descriptions_do_not_matter() -> None:
    """They change with every version."""

    def describe(document: Obj) -> None:
        schema(document)["properties"]["suspend"]["description"] = "Another sentence."

    assert judged(describe).level is Level.OK


def _without(*path: str) -> Callable[[Obj], object]:
    def change(document: Obj) -> None:
        at = schema(document)
        for step in path[:-1]:
            at = at["properties"][step]
        del at["properties"][path[-1]]

    return change


def _condition(kind: str, status: str, message: str = "") -> Callable[[Obj], object]:
    def change(document: Obj) -> None:
        conditions = document["status"]["conditions"]
        conditions[:] = [each for each in conditions if each["type"] != kind]
        conditions.append({"type": kind, "status": status, "message": message})

    return change


def _version(**fields: Any) -> Callable[[Obj], object]:
    return lambda document: document["spec"]["versions"][0].update(fields)


@pytest.mark.parametrize(
    ("change", "level", "said"),
    [
        pytest.param(
            _without("rebalancing", "surge"), Level.ERROR, "it lacks spec.rebalancing.surge", id="older"
        ),
        pytest.param(_without("scheduling"), Level.ERROR, "it lacks spec.scheduling", id="a-part-is-missing"),
        pytest.param(
            lambda document: schema(document)["properties"].update(later={"type": "string"}),
            Level.WARNING,
            "newer than this version: it also has spec.later",
            id="newer",
        ),
        pytest.param(
            lambda document: schema(document)["properties"]["suspend"].update(type="string"),
            Level.WARNING,
            "spec.suspend differ",
            id="another-type",
        ),
        pytest.param(
            _condition("NamesAccepted", "False", '"spol" is already in use'),
            Level.ERROR,
            'collide with those of another definition: "spol" is already in use',
            id="names-taken",
        ),
        pytest.param(
            _condition("Established", "False"), Level.ERROR, "not established", id="not-established"
        ),
        pytest.param(
            _version(served=False), Level.ERROR, "v1alpha1 is not served, only nothing", id="not-served"
        ),
        pytest.param(
            _version(name="v1"), Level.ERROR, "v1alpha1 is not served, only v1", id="another-version"
        ),
        pytest.param(_version(subresources={}), Level.ERROR, "no status subresource", id="no-status"),
        pytest.param(
            lambda document: document["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z"),
            Level.ERROR,
            "being deleted",
            id="deleted",
        ),
        pytest.param(
            lambda document: document["spec"].update(scope="Namespaced"),
            Level.ERROR,
            "its scope is Namespaced, not Cluster",
            id="another-scope",
        ),
    ],
)
def test_what_differs_is_named(change: Callable[[Obj], object], level: Level, said: str) -> None:
    """With the field, and what to do."""
    finding = judged(change)

    assert finding.level is level
    assert said in finding.message
    assert finding.remedy


def test_what_is_missing_or_hidden() -> None:
    """A definition that does not exist is an error; one that may not be read was not checked."""
    right, namespace = right_of("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
    hidden = Unread(right, namespace, 403, "no")
    first, second, third, *_ = names()

    findings = {
        each.subject: each for each in judged_definitions({**installed(), first: None, second: hidden})
    }

    assert (findings[first].level, findings[first].message) == (Level.ERROR, "it is not installed")
    assert findings["customresourcedefinitions"].level is Level.WARNING
    assert findings["customresourcedefinitions"].message == (
        "not checked: you may not list customresourcedefinitions.apiextensions.k8s.io"
    )
    assert findings[third].level is Level.OK


def test_those_that_are_missing_may_be_left_out() -> None:
    """The operator reports at its start what is there, and what could not be read."""
    found: dict[str, Obj | Unread | None] = {**installed(), POLICIES: None}
    told = list(judged_definitions(found, tells_missing=False))
    found[POLICIES] = Unread(right_of("GET", "/apis/x/v1/things")[0], "", 403, "no")
    unread = list(judged_definitions(found, tells_missing=False))

    assert POLICIES not in {each.subject for each in told}
    assert "customresourcedefinitions" in {each.subject for each in unread}


def _parts(at: Obj, path: str = "") -> Iterator[tuple[Obj, str, str]]:
    """Each part of a schema: what holds it, its key there, and its path if it is a field."""
    for name, part in at.get("properties", {}).items():
        here = f"{path}.{name}" if path else name
        yield at["properties"], name, here
        yield from _parts(part, here)
    for key, mark in (("items", "[]"), ("additionalProperties", ".*")):
        if isinstance(at.get(key), dict):
            yield at, key, ""
            yield from _parts(at[key], path + mark)


@pytest.mark.parametrize("kind", [Eviction, PodGroupResource], ids=lambda kind: kind.definition.plural)
def test_whatever_part_is_missing_on_one_side_is_named_by_its_path(kind: Any) -> None:
    """Fields at any depth, some thirty a kind; a side that says nothing of items or other keys lacks none."""
    wanted = crd(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    there = copy.deepcopy(wanted)
    parts = list(_parts(there))
    for holder, key, path in parts[:: len(parts) // 30 + 1]:
        part = holder.pop(key)
        missing = [path] if "." in path or path in ("spec", "status") else []
        assert list(_missing(wanted, there)) == missing, (key, path)
        assert list(_missing(there, wanted)) == []
        assert list(_changed(wanted, there)) == list(_changed(there, wanted)) == []
        holder[key] = part

    assert {key for _, key, _ in parts} >= {"spec", "metadata"}
