"""Requests a new list of nodes where kubelets refuse pods that fit by the nodes as they are known.

A watch may be minutes behind without a sign, and a node may have shrunk in that time. Its kubelet refuses
each pod that is bound to it, the pod's owner makes a new one immediately, and this goes on until the watch
catches up: thousands of failed pods. A list is never behind. One refusal proves little, as another scheduler
may have taken the room; two by one kubelet within half a minute are reason enough for a list, and there is at
most one list of nodes in that time.

Differs: kube-scheduler waits for its watch.
"""

from collections.abc import Callable

from plimsoll.model.kinds.watch_event import PodUpdated, WatchEvent
from plimsoll.policies.served_profiles import ServedProfiles
from plimsoll.ports.clock import Clock
from plimsoll.scheduling.kubelet_rejections import OUT_OF, is_refused

#: Reasons of kubelets that follow from the node's own object, next to OutOf…
OF_NODES = frozenset({"InsufficientResourceError", "NodeAffinity", "NodeUnschedulable", "TaintToleration"})

#: Seconds within which two refusals count together, and at least between two lists.
PAUSE_S = 30.0


class OutdatedNodes:
    """Watches refusals of pods of the profiles that are served.

    Args:
        list_nodes: Requests a list of nodes that is begun now or later.
    """

    def __init__(self, served: ServedProfiles, clock: Clock, list_nodes: Callable[[], object]) -> None:
        self._served = served
        self._clock = clock
        self._list_nodes = list_nodes
        self._refusing: set[str] = set()  #: names of nodes
        self._since = self._rests_until = 0.0

    def observe(self, event: WatchEvent) -> None:
        """A kubelet may have refused a pod."""
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
