"""Writes a Kyverno policy that adopts pods, for servers without MutatingAdmissionPolicy.

Source: Kyverno 1.13, ``kyverno.io/v1`` ClusterPolicy. Kyverno does not compare texts by order, so a canary
cannot be said.
"""

from typing import Any

from plimsoll.adoption.admission_objects import (
    DAEMON_SET,
    adopt_of,
    namespace_selector,
    object_name,
    selector,
)
from plimsoll.api.schema.resource import GROUP
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.model.kinds.pod import DEFAULT_SCHEDULER

Document = dict[str, Any]

#: Kyverno reads the policy with each pod; its service account needs the right to get schedulingpolicies.
PATH = f"/apis/{GROUP}/v1alpha1/schedulingpolicies"


def kyverno_policy(policy: SchedulingPolicy, namespace: str) -> Document:
    """The ClusterPolicy; ``namespace`` is the operator's, which is not adopted.

    Raises:
        ValueError: The policy adopts a percentage.
    """
    adopt, name = adopt_of(policy), policy.metadata.name
    assert adopt is not None
    if adopt.percentage < 100:
        raise ValueError(
            f"policy {name}: Kyverno cannot adopt {adopt.percentage} % of the controllers; choose the canary"
            " by podSelector or namespaces, and leave percentage out"
        )
    pods: Document = {"kinds": ["Pod"], "operations": ["CREATE"]}
    pods["namespaceSelector"] = namespace_selector(adopt, namespace)
    if adopt.pod_selector is not None:
        pods["selector"] = selector(adopt.pod_selector)
    kinds, operator = (
        (sorted(adopt.owner_kinds), "AnyIn") if adopt.owner_kinds else ([DAEMON_SET], "AnyNotIn")
    )
    scheduler = f"{{{{ request.object.spec.schedulerName || '{DEFAULT_SCHEDULER}' }}}}"
    owner = "{{ request.object.metadata.ownerReferences[?controller].kind | [0] || '' }}"
    adopted = "{{ policy.spec.scheduling.schedulerName }}"
    conditions = (
        ("{{ policy.spec.scheduling.adopt || `null` }}", "NotEquals", None),
        ("{{ policy.spec.suspend || `false` }}", "Equals", False),
        ("{{ policy.status.conditions[?type=='Ready'].status | [0] || '' }}", "Equals", "True"),
        (scheduler, "Equals", DEFAULT_SCHEDULER),
        ("{{ request.object.spec.nodeName || '' }}", "Equals", ""),
        (owner, operator, kinds),
    )
    rule = {
        "name": "adopt",
        "match": {"any": [{"resources": pods}]},
        "context": [{"name": "policy", "apiCall": {"urlPath": f"{PATH}/{name}"}}],
        "preconditions": {
            "all": [{"key": key, "operator": each, "value": value} for key, each, value in conditions]
        },
        "mutate": {"patchStrategicMerge": {"spec": {"schedulerName": adopted}}},
    }
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": object_name(name)},
        "spec": {
            "background": False,
            "webhookConfiguration": {"failurePolicy": "Ignore"},
            "rules": [rule],
        },
    }
