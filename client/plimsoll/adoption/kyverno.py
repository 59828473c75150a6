"""Writes a Kyverno policy that adopts pods, for servers without MutatingAdmissionPolicy, to be applied by hand.

Source: Kyverno 1.13, ``kyverno.io/v1`` ClusterPolicy. Kyverno compares no texts by order, so a canary cannot be
said.
"""

from typing import Any

from plimsoll.adoption.admission_objects import (
    DAEMON_SET,
    DEFAULT_SCHEDULER,
    PARAMETER,
    adopt_of,
    namespace_selector,
    object_name,
    selector,
)
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy

Document = dict[str, Any]


def kyverno_policy(policy: SchedulingPolicy, namespace: str) -> Document:
    """The ClusterPolicy; ``namespace`` is the operator's, which has the parameter.

    Raises:
        ValueError: The policy adopts a percentage.
    """
    adopt, name = adopt_of(policy), policy.metadata.name
    assert adopt is not None
    if adopt.percentage < 100:
        raise ValueError(
            f"policy {name}: Kyverno cannot adopt {adopt.percentage} % of the controllers; choose the canary by"
            " podSelector or namespaces, and leave percentage out"
        )
    pods: Document = {"kinds": ["Pod"], "operations": ["CREATE"]}
    pods["namespaceSelector"] = namespace_selector(adopt, namespace)
    if adopt.pod_selector is not None:
        pods["selector"] = selector(adopt.pod_selector)
    kinds, operator = (sorted(adopt.owner_kinds), "AnyIn") if adopt.owner_kinds else ([DAEMON_SET], "AnyNotIn")
    served = f'{{{{ adoption.data."{name}" || \'\' }}}}'
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": object_name(name)},
        "spec": {
            "background": False,
            "webhookConfiguration": {"failurePolicy": "Ignore"},
            "rules": [
                {
                    "name": "adopt",
                    "match": {"any": [{"resources": pods}]},
                    "context": [{"name": "adoption", "configMap": {"name": PARAMETER, "namespace": namespace}}],
                    "preconditions": {
                        "all": [
                            {"key": served, "operator": "NotEquals", "value": ""},
                            {
                                "key": f"{{{{ request.object.spec.schedulerName || '{DEFAULT_SCHEDULER}' }}}}",
                                "operator": "Equals",
                                "value": DEFAULT_SCHEDULER,
                            },
                            {
                                "key": "{{ request.object.spec.nodeName || '' }}",
                                "operator": "Equals",
                                "value": "",
                            },
                            {
                                "key": "{{ request.object.metadata.ownerReferences[?controller].kind | [0]"
                                " || '' }}",
                                "operator": operator,
                                "value": kinds,
                            },
                        ]
                    },
                    "mutate": {"patchStrategicMerge": {"spec": {"schedulerName": served}}},
                }
            ],
        },
    }
