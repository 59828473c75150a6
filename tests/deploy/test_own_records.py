"""deploy/base lets only the operator write Eviction records."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml

from deploy.admission import Admission
from deploy.manifests import DEPLOY, Obj, of_kind
from plimsoll.api.v1alpha1 import KINDS
from plimsoll.api.v1alpha1.eviction import Eviction

FILE = DEPLOY / "base/own_records.yaml"
OBJECTS: list[Obj] = list(yaml.safe_load_all(FILE.read_text(encoding="utf-8")))
(POLICY,) = of_kind(OBJECTS, "ValidatingAdmissionPolicy")
(BINDING,) = of_kind(OBJECTS, "ValidatingAdmissionPolicyBinding")
OPERATOR = "system:serviceaccount:plimsoll:plimsoll"
CREATED = "only the operator creates Eviction records: change the SchedulingPolicy, whose next run decides"


def record(version: str = "v1alpha1", **metadata: Any) -> Obj:
    """A record that says that a pod is being evicted, and metadata; None takes a field away."""
    meta = {
        "name": "web-1-0123abcd",
        "namespace": "shop",
        "labels": {"plimsoll.dev/policy": "tidy"},
        "ownerReferences": [{"kind": "ConfigMap", "name": "a", "uid": "1"}],
        "finalizers": ["foregroundDeletion"],
        **metadata,
    }
    return {
        "apiVersion": f"plimsoll.dev/{version}",
        "kind": "Eviction",
        "metadata": {key: value for key, value in meta.items() if value is not None},
        "spec": {"policy": "tidy", "targetNode": "n1"},
        "status": {"phase": "Evicting"},
    }


def changed(part: str, **fields: Any) -> Obj:
    """The same record with other fields in its spec or status."""
    found = copy.deepcopy(record())
    found[part] = {**found[part], **fields}
    return found


def without_status() -> Obj:
    """The same record before the operator writes a status."""
    found = record()
    del found["status"]
    return found


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(record(), id="create"),
        pytest.param(record(name=None, generateName="web-1-"), id="generateName"),
        pytest.param(record("v1"), id="another-version"),
        pytest.param(without_status(), id="without-a-status"),
        pytest.param(record(annotations={"plimsoll.dev/approved": "true"}), id="approved-from-the-start"),
        pytest.param(record(uid="another"), id="deleted-and-created-again"),
    ],
)
@pytest.mark.parametrize(
    ("user", "groups"),
    [
        ("alice", ["system:authenticated", "team-a"]),
        ("admin", ["system:masters"]),
        ("system:serviceaccount:shop:plimsoll", ["system:serviceaccounts", "system:serviceaccounts:shop"]),
        ("system:serviceaccount:plimsoll:default", ["system:serviceaccounts:plimsoll"]),
    ],
)
def test_no_other_user_creates_records(made: Obj, user: str, groups: list[str]) -> None:
    """By whatever name and version; the operator does."""
    assert Admission(POLICY).refusal(made, None, groups, user) == CREATED
    assert Admission(POLICY).refusal(made, None, user=OPERATOR) == ""


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        pytest.param(record(), changed("status", phase="Evicted"), "status", id="phase"),
        pytest.param(without_status(), record(), "status", id="first-status"),
        pytest.param(record(), without_status(), "status", id="status-taken-away"),
        pytest.param(record(), changed("spec", targetNode="n2"), "spec", id="target"),
        pytest.param(record(), record(labels={"plimsoll.dev/policy": "other"}), "labels", id="labels"),
        pytest.param(record(), record(labels=None), "labels", id="labels-taken-away"),
        pytest.param(
            record(finalizers=None),
            record(finalizers=["example.com/hold"]),
            "finalizers",
            id="finalizer-that-keeps-it",
        ),
        pytest.param(
            record(ownerReferences=None),
            record(ownerReferences=[{"kind": "ConfigMap", "name": "gone", "uid": "2"}]),
            "ownerReferences",
            id="owner-that-deletes-it",
        ),
        pytest.param(
            record(),
            record(ownerReferences=[{"kind": "ConfigMap", "name": "a", "uid": "2"}]),
            "ownerReferences",
            id="another-owner",
        ),
    ],
)
def test_no_other_user_changes_what_a_record_says(old: Obj, new: Obj, what: str) -> None:
    """Neither in the record nor by its subresource, which is an update like any other; the operator does."""
    refusal = Admission(POLICY).refusal(new, old)

    assert refusal == (
        f"only the operator changes {what} of an Eviction record: answer a proposal by the annotation"
        " plimsoll.dev/approved"
    )
    assert Admission(POLICY).refusal(new, old, user=OPERATOR) == ""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(record(), record(annotations={"plimsoll.dev/approved": "true"}), id="approve"),
        pytest.param(
            record(annotations={"plimsoll.dev/approved": "true"}),
            record(annotations={"plimsoll.dev/approved": "false"}),
            id="reject",
        ),
        pytest.param(record(), record(finalizers=None), id="garbage-collector-finalizer"),
        pytest.param(record(), record(ownerReferences=None), id="garbage-collector-owner"),
        pytest.param(record(), record("v1"), id="stored-in-another-version"),
        pytest.param(without_status(), without_status(), id="nothing"),
    ],
)
def test_everybody_with_the_right_to_update_may_answer(old: Obj, new: Obj) -> None:
    """RBAC decides who that is; the garbage collector does its work, too."""
    assert Admission(POLICY).refusal(new, old) == ""


def test_it_judges_every_way_to_write_a_record() -> None:
    """All versions, subresources and writing verbs; deleting a record is left to RBAC."""
    (rule,) = POLICY["spec"]["matchConstraints"]["resourceRules"]
    plural = Eviction.definition.plural

    assert rule == {
        "apiGroups": ["plimsoll.dev"],
        "apiVersions": ["*"],
        "operations": ["CREATE", "UPDATE"],
        "resources": [plural, f"{plural}/*"],
        "scope": "*",
    }
    assert Eviction in KINDS
    assert POLICY["spec"]["failurePolicy"] == "Fail"
    assert "matchPolicy" not in POLICY["spec"]["matchConstraints"], "equivalent kinds are matched"
    assert BINDING["spec"] == {
        "policyName": POLICY["metadata"]["name"],
        "validationActions": ["Deny", "Audit"],
    }
