"""Questions about conversion webhooks that kube-apiserver was asked."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from asked_server import Case
from webhook_cases import APPLY, JSON_PATCH, MERGE

GROUP = "SPACE.example.com"
V1, V2 = f"/apis/{GROUP}/v1/namespaces/SPACE/turnips", f"/apis/{GROUP}/v2/namespaces/SPACE/turnips"


def _schema(**spec: Any) -> Any:
    properties = {"spec": {"type": "object", "properties": spec}}
    properties["status"] = {
        "type": "object",
        "properties": {"grown": {"type": "integer"}, "seen": {"type": "integer"}},
    }
    return {"openAPIV3Schema": {"type": "object", "properties": properties}}


def _version(name: str, **spec: Any) -> Any:
    more = (
        {"subresources": {"status": {}}}
        if name == "v1"
        else {
            "subresources": {
                "status": {},
                "scale": {"specReplicasPath": ".spec.length", "statusReplicasPath": ".status.grown"},
            }
        }
    )
    return {"name": name, "served": True, "storage": name == "v1", "schema": _schema(**spec), **more}


#: In v1 a turnip has a size of 1 unless it says so; in v2 a length, and a colour.
SPEC = {
    "group": GROUP,
    "scope": "Namespaced",
    "names": {"plural": "turnips", "singular": "turnip", "kind": "Turnip", "listKind": "TurnipList"},
    "versions": [
        _version("v1", size={"type": "integer", "default": 1}, note={"type": "string"}),
        _version(
            "v2",
            length={"type": "integer", "maximum": 100},
            note={"type": "string"},
            colour={"type": "string", "default": "white"},
        ),
    ],
}


def converted(request: Any) -> list[Any]:
    """Turnips in the other version."""
    found = []
    for one in copy.deepcopy(request["objects"]):
        before, spec = one["apiVersion"], one.get("spec") or {}
        one["apiVersion"] = request["desiredAPIVersion"]
        if before.endswith("v1"):
            spec["length"] = spec.pop("size", None)
        else:
            spec["size"] = spec.pop("length", None)
        one["spec"] = {key: value for key, value in spec.items() if value is not None}
        found.append(one)
    return found


def right(request: Any) -> Any:
    """The answer of a webhook without faults."""
    return {"convertedObjects": converted(request)}


def changing(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """An answer with a change of each object that is converted."""

    def answer(request: Any) -> Any:
        found = converted(request)
        for one in found:
            change(one)
        return {"convertedObjects": found}

    return answer


def defined(answer: Any, **more: Any) -> Any:
    """A definition with a webhook."""
    return {"metadata": {"name": f"turnips.{GROUP}"}, "spec": copy.deepcopy(SPEC), "answer": answer, **more}


def a_turnip(version: str, name: str = "one", labels: Any = None, **spec: Any) -> Any:
    """A turnip."""
    return {
        "apiVersion": f"{GROUP}/{version}",
        "kind": "Turnip",
        "metadata": {"name": name, "labels": {"app": "web"} if labels is None else labels},
        "spec": spec,
    }


def stored_in(version: str, answer: Any = right) -> Any:
    """A definition that stores in a version."""
    found = defined(answer)
    for one in found["spec"]["versions"]:
        one["storage"] = one["name"] == version
    return found


WATCH = "?watch=true&resourceVersion=0&timeoutSeconds=1"
#: Reads and writes in the version that is not stored.
THROUGH = [
    ["GET", f"{V2}/one"],
    ["SLEEP", 1.5],
    ["GET", V2],
    ["GET", f"{V2}{WATCH}"],
    ["POST", V2, a_turnip("v2", "two", length=2)],
    ["PATCH", f"{V2}/one", {"spec": {"length": 9}}, MERGE],
    ["DELETE", f"{V2}/one"],
    ["GET", f"{V1}/one"],
    ["GET", f"{V1}/two"],
]
#: What a webhook does to an object that it converts.
CHANGES: dict[str, Callable[[Any], Any]] = {
    "another name": lambda one: one["metadata"].update(name="other"),
    "another namespace": lambda one: one["metadata"].update(namespace="other"),
    "another uid": lambda one: one["metadata"].update(uid="x"),
    "another kind": lambda one: one.update(kind="Radish"),
    "another version": lambda one: one.update(apiVersion="v3"),
    "no version": lambda one: one.pop("apiVersion"),
    "no metadata": lambda one: one.pop("metadata"),
    "metadata is a text": lambda one: one.update(metadata="x"),
    "a label and an annotation": lambda one: one["metadata"].update(
        labels={"x": "y"}, annotations={"a": "b"}
    ),
    "no labels": lambda one: one["metadata"].pop("labels", None),
    "a label that is not valid": lambda one: one["metadata"].update(labels={"x": "a b"}),
    "an annotation that is not valid": lambda one: one["metadata"].update(annotations={"a b": "1"}),
    "a label is a number": lambda one: one["metadata"].update(labels={"x": 1}),
    "labels are a list": lambda one: one["metadata"].update(labels=["x"]),
    "a finalizer and a generation": lambda one: one["metadata"].update(finalizers=["a.b/c"], generation=7),
    "an unknown field": lambda one: one["spec"].update(weight=3),
    "a value of another type": lambda one: one["spec"].update(length="long", size="big"),
    "above the maximum": lambda one: one["spec"].update(length=1000),
}
#: Answers that are not as they should be.
ANSWERS: dict[str, Any] = {
    "it has failed": {"result": {"status": "Failure", "message": "cannot"}},
    "it has failed without a word": {"result": {"status": "Failure"}},
    "no result": {"result": None},
    "no objects": {"convertedObjects": []},
    "no list of objects": {},
    "two objects": {"convertedObjects": [{}, {}]},
    "an empty object": {"convertedObjects": [{}]},
    "no response": {"none": True},
    "another uid": {"uid": "x"},
    "another kind": {"head": {"kind": "Other"}},
    "another version": {"head": {"apiVersion": "apiextensions.k8s.io/v1beta1"}},
    "not JSON": {"http": 200, "text": "hello"},
    "an empty body": {"http": 200},
    "an empty JSON object": {"http": 200, "text": "{}"},
    "a failure with text": {"http": 500, "text": "oh"},
    "not found": {"http": 404, "text": "404 page not found"},
}

CASES = [
    Case(
        "both versions",
        [
            ["POST", V1, a_turnip("v1", size=5, note="n")],
            ["GET", f"{V1}/one"],
            ["GET", f"{V2}/one"],
            ["POST", V2, a_turnip("v2", "two", length=7)],
            ["POST", V2, a_turnip("v2", "three")],
            ["GET", f"{V1}/two"],
            ["GET", f"{V1}/three"],
            ["GET", f"{V2}/three"],
            ["PUT", f"{V2}/none", a_turnip("v2", "none")],
            ["PATCH", f"{V2}/two", {"spec": {"length": 8, "colour": "red"}}, MERGE],
            ["PATCH", f"{V1}/two", [{"op": "replace", "path": "/spec/size", "value": 9}], JSON_PATCH],
            ["PATCH", f"{V2}/one?fieldManager=me&force=true", {**a_turnip("v2", length=3)}, APPLY],
            ["PATCH", f"{V2}/four?fieldManager=me", {**a_turnip("v2", "four", length=4)}, APPLY],
            ["PATCH", f"{V2}/one/status", {"status": {"grown": 2}}, MERGE],
            ["GET", f"{V2}/one/scale"],
            ["PATCH", f"{V2}/one/scale", {"spec": {"replicas": 6}}, MERGE],
            ["POST", V2, a_turnip("v2", "five", length=1000)],
            ["POST", f"{V2}?dryRun=All", a_turnip("v2", "six", length=1)],
            ["GET", V1],
            ["GET", V2],
            ["GET", f"{V2}?labelSelector=app=web&limit=2"],
            ["GET", f"{V2}{WATCH}"],
            ["GET", f"/apis/{GROUP}/v2/turnips"],
            ["DELETE", f"{V2}/one"],
            ["DELETE", f"{V1}?labelSelector=app=web"],
            ["GET", V1],
        ],
        definition=defined(right),
    ),
    Case(
        "what is asked",
        [["POST", V2, a_turnip("v2", length=7)]],
        definition=defined(right),
        also=("asked",),
    ),
    Case(
        "reviews of v1beta1",
        [["POST", V2, a_turnip("v2", length=7)], ["GET", f"{V2}/one"]],
        definition=defined(
            lambda request: {"uid": "", **right(request)},
            webhook={"conversionReviewVersions": ["v3", "v1beta1", "v1"]},
        ),
        also=("asked",),
    ),
    Case(
        "stored in the newer version",
        [
            ["POST", V1, a_turnip("v1")],
            ["GET", f"{V2}/one"],
            ["GET", f"{V1}/one"],
            ["PATCH", f"{V1}/one", {"spec": {"note": "x"}}, MERGE],
            ["GET", V1],
        ],
        definition=stored_in("v2"),
    ),
    Case(
        "the version that is stored changes",
        [
            [
                "PATCH",
                f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/turnips.{GROUP}",
                {"spec": {"versions": stored_in("v2")["spec"]["versions"]}},
                MERGE,
            ],
            ["SLEEP", 2.0],
            ["GET", f"{V2}/one"],
            ["GET", f"{V1}/one"],
            ["PATCH", f"{V1}/one", {"spec": {"note": "x"}}, MERGE],
            ["GET", f"{V2}/one"],
            ["GET", V2],
            ["GET", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/turnips.{GROUP}/status"],
        ],
        setup=[["POST", V1, a_turnip("v1", size=4)]],
        definition=defined(right),
    ),
    Case(
        "admission sees the version of its rule",
        [["POST", V2, a_turnip("v2", length=7)], ["PATCH", f"{V2}/one", {"spec": {"length": 8}}, MERGE]],
        mutating=[
            {
                "rules": [
                    {
                        "apiGroups": [GROUP],
                        "apiVersions": ["v1"],
                        "operations": ["*"],
                        "resources": ["turnips"],
                    }
                ],
                "answer": {"patch": [{"op": "add", "path": "/spec/note", "value": "seen"}]},
            },
        ],
        definition=defined(right),
        also=("object.spec", "oldObject.spec", "requestKind"),
    ),
    *(
        Case(
            f"a conversion with {name}",
            THROUGH[:7],
            setup=[["POST", V1, a_turnip("v1", size=5)]],
            definition=defined(changing(change)),
        )
        for name, change in CHANGES.items()
    ),
    *(
        Case(
            f"an answer about a conversion: {name}",
            THROUGH,
            setup=[["POST", V1, a_turnip("v1", size=5)]],
            definition=defined(answer),
        )
        for name, answer in ANSWERS.items()
    ),
]
