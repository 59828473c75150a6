"""Decides which pods leave a node that is emptied."""

from plimsoll.framework import PodInfo


def may_leave(pod: PodInfo) -> bool:
    """Whether the pod counts; DaemonSet pods and static pods stay, others are terminating or have ended."""
    return not pod.pod.goes_with_its_node and not pod.is_terminating and not pod.pod.is_terminal
