"""Decides whether any scheduler serves the scheduler name of a pod, and why none does.

Kubernetes has no list of schedulers. One is recognized by its effects: it has placed a pod, or has written
why it could not.
"""

from collections.abc import Mapping

from plimsoll.model.kinds.pod import DEFAULT_SCHEDULER, Pod
from plimsoll.policies.conditions import near
from plimsoll.ports.pod_writes import NOT_READY, UNSCHEDULABLE

#: Minimum wait of a pod in seconds before it counts.
PATIENCE_S = 60.0

#: Reasons of ``PodScheduled`` that schedulers write, as opposed to the API server.
_WRITTEN = (UNSCHEDULABLE, NOT_READY, "SchedulerError")

#: By scheduler name: the policy that claims it, and why the policy does not serve it, "" if it does.
Claims = Mapping[str, tuple[str, str]]


def is_served(pod: Pod) -> bool:
    """Whether the pod's scheduler was seen to work: it has placed the pod, or written why not."""
    return bool(pod.node_name) or any(
        each.type == "PodScheduled" and each.reason in _WRITTEN for each in pod.status.conditions
    )


def may_wait(pod: Pod) -> bool:
    """Whether a scheduler should place the pod."""
    return not (pod.node_name or pod.is_terminal or pod.is_terminating or pod.spec.scheduling_gates)


def sentence(name: str, claimed: Claims) -> str:
    """Why no scheduler places pods of a scheduler name."""
    if name in claimed:
        policy, problem = claimed[name]
        return f'SchedulingPolicy {policy} has schedulerName "{name}" and does not serve it: {problem}'
    return (
        f'no scheduler is known that serves schedulerName "{name}": no SchedulingPolicy has it, and no pod'
        f" with it was ever placed{near(name, [*claimed, DEFAULT_SCHEDULER])}"
    )
