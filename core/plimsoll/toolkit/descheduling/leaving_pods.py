"""Decides which pods leave a node that is emptied, and which go with it."""

from plimsoll.framework import PodInfo

#: Annotation of the mirror pod of a static pod.
MIRROR = "kubernetes.io/config.mirror"


def goes_with_its_node(pod: PodInfo) -> bool:
    """Whether the pod runs where its node is and nowhere else: a DaemonSet's, or a static one's mirror."""
    metadata = pod.pod.metadata
    return MIRROR in metadata.annotations or metadata.has_owner_of("DaemonSet", "Node")


def may_leave(pod: PodInfo) -> bool:
    """Whether the pod counts; DaemonSet pods and static pods stay, others are terminating or have ended."""
    return not goes_with_its_node(pod) and not pod.is_terminating and not pod.pod.is_terminal
