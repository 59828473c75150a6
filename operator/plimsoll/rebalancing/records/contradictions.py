"""Says what in a record contradicts the cluster, so that the operator cannot have written it.

Users with the right may write records, so each is compared with its pod before it counts. A record that is
contradicted is left as it is: it is not continued, reserves nothing, and counts in no limit and no history.
"""

from collections.abc import Callable

from plimsoll.api.v1alpha1.eviction_naming import is_name_for
from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.framework import PodInfo
from plimsoll.records.record import Record


def contradiction(record: Record, find: Callable[[str], PodInfo | None]) -> str:
    """What contradicts the record, in a sentence for people; "" if nothing does.

    Args:
        record: As the API server has it.
        find: Finds a pod by uid; None without such a pod.
    """
    spec = record.spec
    named, pod = spec.pod, find(spec.pod.uid)
    if record.namespace != named.namespace:
        return f"the record is in namespace {record.namespace}, and its pod in {named.namespace}"
    if not is_name_for(record.name, named.name):
        return f"the record's name is not one of a record about pod {named.name}"
    if pod is not None and (pod.namespace, pod.pod.name) != (named.namespace, named.name):
        return f"the uid of its pod is that of pod {pod.key}"
    if pod is not None and pod.pod.node_name not in ("", spec.from_node):
        return f"its pod is on node {pod.pod.node_name}, and not on {spec.from_node}"
    if spec.mode is Mode.DRY_RUN and record.is_moving:
        return f"it is a prediction, and {record.phase}"
    landed = record.status.replacement
    replacement = None if landed is None else find(landed.uid)
    if replacement is not None and replacement.namespace != record.namespace:
        return f"its replacement is pod {replacement.key}, in another namespace"
    return ""
