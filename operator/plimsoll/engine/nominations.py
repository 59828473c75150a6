"""Who was promised which node."""

from plimsoll.framework import PodInfo


class Nominations:
    """Pending pods with a nominated node: they hold their room against pods of no higher priority."""

    def __init__(self) -> None:
        self.by_node: dict[str, dict[str, PodInfo]] = {}
        self._node_of: dict[str, str] = {}

    def add(self, pod: PodInfo, node: str) -> None:
        """Nominate; an earlier nomination of the pod ends."""
        self.remove(pod.uid)
        self.by_node.setdefault(node, {})[pod.uid] = pod
        self._node_of[pod.uid] = node

    def remove(self, uid: str) -> None:
        """Forget a pod's nomination."""
        node = self._node_of.pop(uid, None)
        if node is not None:
            del self.by_node[node][uid]
            if not self.by_node[node]:
                del self.by_node[node]

    def node_of(self, uid: str) -> str:
        """The node that a pod is nominated to, "" when to none."""
        return self._node_of.get(uid, "")
