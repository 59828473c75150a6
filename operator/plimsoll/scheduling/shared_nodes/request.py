"""BindingRequest: the pod condition by which a replica asks the holder of a node to bind the pod to it.

::

    True, message: node   requested by the replica that places the pod
    False, reason         answered by the node's replica: no room any more, or request too old; or withdrawn
                          by the requesting replica
    gone with a binding   done: the pod has its node

It is a condition of the pod because both replicas watch pods, in order with the pod's binding, and because
writing it takes no right that a scheduler lacks.
"""

from enum import StrEnum

from plimsoll.framework import Pod
from plimsoll.model.kinds.pod import PodCondition
from plimsoll.ports.pods import BINDING_REQUESTED

#: Seconds that the holder of a node has to bind a pod to it.
ANSWER_S = 5.0


class RequestReason(StrEnum):
    """The condition's reason."""

    ASKED = "NodeOfAnotherReplica"
    REFUSED = "NoRoom"
    STALE = "AskedTooLongAgo"
    WITHDRAWN = "NotAnswered"


def open_request(pod: Pod) -> PodCondition | None:
    """The request to bind a pod, whose message is the node; None without one."""
    for each in pod.status.conditions:
        if each.type == BINDING_REQUESTED and each.status == "True":
            return each
    return None


def requested_node(pod: Pod) -> str:
    """The node that a pod requests from its holder, "" for none."""
    asked = open_request(pod)
    return "" if asked is None else asked.message


def refusal(pod: Pod, node: str) -> str:
    """Why the holder of a node refused to bind a pod to it, "" if it did not refuse."""
    for each in pod.status.conditions:
        is_refused = each.status == "False" and each.reason in (RequestReason.REFUSED, RequestReason.STALE)
        if each.type == BINDING_REQUESTED and is_refused and each.message.startswith(f"{node}: "):
            return each.message
    return ""
