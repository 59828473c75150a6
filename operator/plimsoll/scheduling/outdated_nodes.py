"""Requests a new list of nodes when kubelets reject pods that fit their nodes as mirrored.

A watch may lag by minutes without a sign, and a node may have shrunk in that time. Its kubelet rejects each
pod that is bound to it and the pod's owner immediately creates a new one: thousands of failed pods, until the
watch catches up. A list is never stale. One rejection proves little, as another scheduler may have taken the
room. Two rejections by one kubelet within half a minute request a list; there is at most one list of nodes in
that time.

Differs: kube-scheduler waits for its watch.
"""

from collections.abc import Callable

from plimsoll.cluster.watch_events import PodUpdated, WatchEvent
from plimsoll.policy_controller.served_profiles import ServedProfiles
from plimsoll.ports.clock import Clock
from plimsoll.scheduling.kubelet_rejections import OUT_OF, is_refused

#: Kubelet reasons that follow from the node's own object, in addition to OutOf…
OF_NODES = frozenset({"InsufficientResourceError", "NodeAffinity", "NodeUnschedulable", "TaintToleration"})

#: Seconds within which two rejections count together, and the minimum between two lists.
PAUSE_S = 30.0


class OutdatedNodes:
    """Watches rejections of pods of the served profiles.

    Args:
        list_nodes: Requests a list of nodes that begins now or later.
    """

    def __init__(self, served: ServedProfiles, clock: Clock, list_nodes: Callable[[], object]) -> None:
        self._served = served
        self._clock = clock
        self._list_nodes = list_nodes
        self._refusing: set[str] = set()  #: names of nodes
        self._since = self._rests_until = 0.0

    def observe(self, event: WatchEvent) -> None:
        """Handle a pod status that may be a kubelet's rejection."""
        match event:
            case PodUpdated(old, pod) if is_refused(pod) and not is_refused(old):
                reason = pod.status.reason
                if (reason.startswith(OUT_OF) or reason in OF_NODES) and self._served.serves(pod):
                    self._refused(pod.node_name)

    def _refused(self, node: str) -> None:
        now = self._clock.monotonic()
        if now < self._rests_until:
            return
        if now - self._since > PAUSE_S:
            self._refusing.clear()
            self._since = now
        if node not in self._refusing:
            self._refusing.add(node)
            return
        self._refusing.clear()
        self._rests_until = now + PAUSE_S
        self._list_nodes()
