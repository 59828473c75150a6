"""Decides which pods a policy adopts: the admission objects of ``spec.scheduling.adopt``.

A MutatingAdmissionPolicy sets ``spec.schedulerName`` of new pods. Its parameter is the SchedulingPolicy
itself: pods are adopted while that exists, is not suspended, still says ``adopt``, and has the condition
Ready. So nothing is adopted for a policy that is deleted, rejected, or withdrawn because no operator leads
(docs/adr/0051-adoption.md).

Every field is written that the API server would default, so that objects can be compared (:mod:`.drift`).
Source: kube-apiserver v1.36, ``pkg/apis/admissionregistration``.
"""

from collections.abc import Iterator
from typing import Any

from plimsoll.api.schema.conditions import READY
from plimsoll.api.schema.label_selectors import LabelSelectorSpec
from plimsoll.api.schema.resource import GROUP as PLIMSOLL
from plimsoll.api.v1alpha1.adoption import AdoptSpec
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.model.kinds.pod import DEFAULT_SCHEDULER

GROUP = "admissionregistration.k8s.io"

#: Versions in which servers have MutatingAdmissionPolicy; the first that is served is used.
VERSIONS = ("v1", "v1beta1")

POLICIES, BINDINGS = "mutatingadmissionpolicies", "mutatingadmissionpolicybindings"

#: Names of the admission objects begin so; the policy's name follows.
PREFIX = "plimsoll-adopt-"

NAMESPACE_LABEL = "kubernetes.io/metadata.name"

#: Not adopted unless the policy names it.
SYSTEM_NAMESPACE, DAEMON_SET = "kube-system", "DaemonSet"

#: The part of a uid that decides about a canary: 32 of its random bits, in hexadecimal digits.
_DIGITS = 8

Document = dict[str, Any]


def object_name(policy: str) -> str:
    """The name of both admission objects of a policy."""
    return PREFIX + policy


def adopt_of(policy: SchedulingPolicy) -> AdoptSpec | None:
    """What a policy adopts, None for nothing."""
    return policy.spec.scheduling.adopt if policy.spec.scheduling is not None else None


def admission_objects(policy: SchedulingPolicy, namespace: str, version: str = VERSIONS[0]) -> list[Document]:
    """The admission policy and its binding.

    Args:
        policy: A policy with ``spec.scheduling.adopt``.
        namespace: The operator's namespace, which is not adopted.
        version: One of ``VERSIONS``.
    """
    adopt, name = adopt_of(policy), policy.metadata.name
    assert adopt is not None
    metadata = {"name": object_name(name), "labels": {"app.kubernetes.io/name": "plimsoll"}}
    expression = "Object{spec: Object.spec{schedulerName: params.spec.scheduling.schedulerName}}"
    return [
        {
            "apiVersion": f"{GROUP}/{version}",
            "kind": "MutatingAdmissionPolicy",
            "metadata": metadata,
            "spec": {
                "paramKind": {"apiVersion": f"{PLIMSOLL}/v1alpha1", "kind": "SchedulingPolicy"},
                "failurePolicy": "Ignore",  # nothing of ours may prevent a pod
                "reinvocationPolicy": "Never",
                "matchConstraints": {
                    "matchPolicy": "Equivalent",
                    "namespaceSelector": namespace_selector(adopt, namespace),
                    "objectSelector": {} if adopt.pod_selector is None else selector(adopt.pod_selector),
                    "resourceRules": [
                        {
                            "apiGroups": [""],
                            "apiVersions": ["v1"],
                            "operations": ["CREATE"],
                            "resources": ["pods"],
                            "scope": "*",
                        }
                    ],
                },
                "matchConditions": [{"name": each, "expression": said} for each, said in _conditions(adopt)],
                "mutations": [
                    {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}
                ],
            },
        },
        {
            "apiVersion": f"{GROUP}/{version}",
            "kind": "MutatingAdmissionPolicyBinding",
            "metadata": metadata,
            "spec": {
                "policyName": object_name(name),
                "paramRef": {"name": name, "parameterNotFoundAction": "Allow"},
            },
        },
    ]


def named_objects(policy: str, version: str = VERSIONS[0]) -> list[Document]:
    """Kinds and names of the admission objects of a policy, without their contents."""
    kinds = ("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding")
    metadata = {"name": object_name(policy)}
    return [{"apiVersion": f"{GROUP}/{version}", "kind": kind, "metadata": metadata} for kind in kinds]


def namespace_selector(adopt: AdoptSpec, own: str) -> Document:
    """The selector of namespaces; ``own`` is the operator's namespace."""
    chosen = adopt.namespaces
    left_out = sorted({SYSTEM_NAMESPACE, own, *chosen.exclude} - {*chosen.include})
    found: Document = {} if chosen.label_selector is None else selector(chosen.label_selector)
    named = [("In", sorted(chosen.include))] if chosen.include else []
    named += [("NotIn", left_out)] if left_out else []
    requirements = [
        {"key": NAMESPACE_LABEL, "operator": operator, "values": names} for operator, names in named
    ]
    return found | {"matchExpressions": [*found.get("matchExpressions", ()), *requirements]}


def selector(spec: LabelSelectorSpec) -> Document:
    """A label selector in the API's form, without empty parts."""
    return {key: each for key, each in spec.model_dump(mode="json", by_alias=True).items() if each}


def _conditions(adopt: AdoptSpec) -> Iterator[tuple[str, str]]:
    """Names and expressions of what must hold of a pod."""
    yield "policy-adopts", "has(params.spec.scheduling.adopt) && !params.spec.?suspend.orValue(false)"
    ready = f"each.type == '{READY}' && each.status == 'True'"
    yield "policy-is-ready", f"params.?status.?conditions.orValue([]).exists(each, {ready})"
    yield "names-no-scheduler", f"object.spec.?schedulerName.orValue('') in ['', '{DEFAULT_SCHEDULER}']"
    yield "has-no-node", "object.spec.?nodeName.orValue('') == ''"
    owners = "object.metadata.?ownerReferences.orValue([])"
    if adopt.owner_kinds:
        kinds = ", ".join(f"'{kind}'" for kind in sorted(adopt.owner_kinds))
        said = f"{owners}.exists(owner, owner.?controller.orValue(false) && owner.kind in [{kinds}])"
        yield "is-of-an-owner-kind", said
    else:
        said = f"owner.?controller.orValue(false) && owner.kind == '{DAEMON_SET}'"
        yield "is-not-of-a-daemon-set", f"!{owners}.exists(owner, {said})"
    if adopt.percentage < 100:
        said = f"owner.?controller.orValue(false) && owner.uid < '{uid_bound(adopt.percentage)}'"
        yield "is-of-the-canary", f"{owners}.exists(owner, {said})"


def uid_bound(percentage: int) -> str:
    """The text below which this part of all uids lies; texts compare as their hexadecimal numbers do."""
    return f"{percentage * 16**_DIGITS // 100:0{_DIGITS}x}"
