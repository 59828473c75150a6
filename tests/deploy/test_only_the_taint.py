"""deploy/enforce restricts changes of nodes beyond RBAC."""

from __future__ import annotations

import copy
import re

import pytest
import yaml
from kubernetes_asyncio.client import V1NodeSpec

from deploy.admission import Admission
from deploy.manifests import DEPLOY, Obj, of_kind
from plimsoll.model.taints import CONSOLIDATING, UNHEALTHY

FILE = DEPLOY / "enforce/only_the_taint.yaml"
OBJECTS: list[Obj] = list(yaml.safe_load_all(FILE.read_text(encoding="utf-8")))
(POLICY,) = of_kind(OBJECTS, "ValidatingAdmissionPolicy")
(BINDING,) = of_kind(OBJECTS, "ValidatingAdmissionPolicyBinding")
OPERATOR = "system:serviceaccount:plimsoll:plimsoll"

OURS = {"key": CONSOLIDATING, "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}
OTHER = {"key": "dedicated", "value": "gpu", "effect": "NoExecute"}
EVIL = {"key": "evil", "effect": "NoExecute"}


def node(*taints: Obj, **changes: object) -> Obj:
    """A node with these taints, and fields set by their path; None takes one away."""
    found: Obj = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1", "labels": {"zone": "a"}, "annotations": {"kubelet": "x"}},
        "spec": {"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"], "providerID": "cloud://n1"},
    }
    if taints:
        found["spec"]["taints"] = copy.deepcopy(list(taints))
    for path, value in changes.items():
        part, _, name = path.partition("_")
        if value is None:
            del found[part][name]
        else:
            found[part][name] = value
    return found


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (node(), node(OURS)),
        (node(OURS), node()),
        (node(), node({**OURS, "effect": "PreferNoSchedule"})),
        (node({**OURS, "effect": "PreferNoSchedule"}), node(OURS)),
        (node(OURS), node(OURS, {**OURS, "key": UNHEALTHY})),
        (node({**OURS, "key": UNHEALTHY}), node()),
        (node(OTHER), node(OTHER, OURS)),
        (node(OURS, OTHER), node(OTHER)),
        (node(OURS, OTHER), node(OTHER, {**OURS, "timeAdded": "2027-01-01T00:00:00Z"})),
        (node(OTHER), node(OTHER)),
        (node(spec_unschedulable=True), node(OURS, spec_unschedulable=True)),
    ],
)
def test_our_taint_may_be_set_and_removed(old: Obj, new: Obj) -> None:
    """Whatever other taints there are."""
    assert Admission(POLICY).refusal(new, old, user=OPERATOR) == ""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (node(OTHER), node()),
        (node(OTHER), node(OURS)),
        (node(), node(EVIL)),
        (node(OTHER), node(OTHER, OURS, EVIL)),
        (node(OTHER), node({**OTHER, "value": "cpu"}, OURS)),
        (node(OTHER), node({**OTHER, "effect": "NoSchedule"})),
        (node(), node({**OURS, "effect": "NoExecute"})),
        (node(), node({**OURS, "value": "x"})),
        (node(), node({**OURS, "key": UNHEALTHY, "effect": "NoExecute"})),
        (node(), node({**OURS, "key": "plimsoll.dev/un"})),
        (node(), node(spec_unschedulable=True)),
        (node(), node(OURS, spec_unschedulable=True)),
        (node(), node(spec_podCIDR="10.9.0.0/24")),
        (node(), node(spec_podCIDRs=["10.9.0.0/24"])),
        (node(), node(spec_providerID=None)),
        (node(), node(spec_externalID="x")),
        (node(), node(spec_configSource={"configMap": {"name": "x"}})),
        (node(), node(metadata_labels={"zone": "b"})),
        (node(), node(OURS, metadata_labels=None)),
        (node(), node(metadata_annotations={"kubelet": "y"})),
        (node(), node(metadata_finalizers=["example.com/x"])),
        (node(), node(metadata_ownerReferences=[{"name": "x"}])),
    ],
)
def test_nothing_else_may_be_changed(old: Obj, new: Obj) -> None:
    """By the operator; everybody else, kubelets first of all, is judged by others."""
    refusal = Admission(POLICY).refusal(new, old, user=OPERATOR)

    assert refusal == (
        "the operator may set and remove the taints plimsoll.dev/consolidating and plimsoll.dev/unhealthy of"
        " a node, with the effect NoSchedule or PreferNoSchedule, and nothing else"
    )
    assert Admission(POLICY).refusal(new, old, user="system:node:n1", groups=["system:nodes"]) == ""


def test_every_field_of_a_node_is_compared() -> None:
    """As the client library of the newest release describes them: a new one must be added."""
    (fields,) = [each["expression"] for each in POLICY["spec"]["variables"] if each["name"] == "fields"]

    assert set(re.findall(r"'(\w+)'", fields)) == set(V1NodeSpec.attribute_map.values()) - {"taints"}  # type: ignore[attr-defined] # known to exist in this test


def test_the_taints_are_those_that_the_operator_sets() -> None:
    """The same names in the code and in the policy."""
    (taints,) = [each["expression"] for each in POLICY["spec"]["variables"] if each["name"] == "taints"]

    assert taints == str([CONSOLIDATING, UNHEALTHY])
