"""GangClaims: claims without devices that several gang members share; the first member chooses for all.

Axis letter: N nodes.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from plimsoll.devices.book import DeviceBook
from plimsoll.devices.pod_claims import shared_keys
from plimsoll.model.columns.cluster import PODS, Cluster
from plimsoll.model.columns.columns import BoolArray, RowArray
from plimsoll.model.columns.snapshot import Snapshot
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.model.kinds.resource_claim import ResourceClaim
from plimsoll.model.selectors import NodeSelector, compile_node_matcher
from plimsoll.toolkit.node_matching import matching_nodes

#: Maximum number of times that a gang is placed again because members do not fit near their claim's devices.
MOST_TURNS = 8


class GangClaims:
    """Unallocated claims that several members share.

    The member that gets devices for such a claim restricts all others to the nodes that reach these. So it
    chooses first among nodes with room for all of them. If the others do not fit there nevertheless, for
    example because of ports or affinities, the gang is placed again with devices elsewhere.

    Args:
        members: The members to place.
        cluster: The cluster; it is only read.
    """

    def __init__(self, members: Sequence[PodInfo], cluster: Cluster) -> None:
        self._users: dict[str, list[PodInfo]] = {}
        self._tried: dict[str, list[NodeSelector]] = {}
        self._given: dict[str, NodeSelector | None] = {}
        self._turns = 1
        self._claims: Mapping[str, ResourceClaim] = {}
        book = cluster.objects.known_ledger(DeviceBook)
        if book is None:
            return
        self._claims = book.claims
        users: dict[str, list[PodInfo]] = {}
        for pod in members:
            for key in self._shared(pod):
                claim = book.claims.get(key)
                if claim is not None and not claim.is_allocated:
                    users.setdefault(key, []).append(pod)
        self._users = {key: pods for key, pods in users.items() if len(pods) > 1}

    def decides(self, pod: PodInfo) -> bool:
        """Whether this member's node decides where others may go."""
        return any(self._open(pod))

    def home(self, pod: PodInfo, rows: RowArray, fork: Cluster) -> BoolArray | None:
        """Preferred nodes of a member that decides, shape (N,); None without a preference.

        Args:
            pod: The member.
            rows: The rows of its feasible nodes.
            fork: The fork with the members placed before it.
        """
        snapshot = Snapshot(fork)
        nodes: BoolArray = np.zeros(len(fork), dtype=np.bool_)
        nodes[rows] = True
        for key in self._open(pod):
            for reached in self._tried.get(key, ()):
                nodes &= ~matching_nodes(compile_node_matcher({}, reached), snapshot)
        if not nodes.any():
            return None
        roomy = nodes & self._has_room(pod, fork)
        return roomy if roomy.any() else nodes

    def note(self, pod: PodInfo, fork: Cluster) -> None:
        """Note that a member was placed; its devices are in the fork's book."""
        book = fork.objects.ledger(DeviceBook)
        for key in list(self._open(pod)):
            allocation = book.claims[key].status.allocation
            if allocation is not None:
                self._given[key] = allocation.node_selector

    def look_elsewhere(self, refused: Iterable[PodInfo]) -> bool:
        """Whether these members may fit near other devices, which the next turn searches."""
        found = False
        for pod in refused:
            for key in self._shared(pod):
                reached = self._given.get(key)
                tried = self._tried.setdefault(key, [])
                if reached is not None and reached not in tried:
                    tried.append(reached)
                    found = True
        self._given.clear()
        self._turns += 1
        return found and self._turns <= MOST_TURNS

    def _open(self, pod: PodInfo) -> Iterable[str]:
        return (key for key in self._shared(pod) if key in self._users and key not in self._given)

    def _has_room(self, pod: PodInfo, fork: Cluster) -> BoolArray:
        """Where all members that share a claim with this one have room, shape (N,), devices apart."""
        book = fork.objects.ledger(DeviceBook)
        users = {each.uid: each for key in self._open(pod) for each in self._users[key]}
        waiting = [each for each in users.values() if each.uid not in fork.pods]
        amounts = Counter[str]()
        for each in waiting:
            amounts.update(each.requests)
        # Nodes do not have a resource themselves where devices serve it.
        own = {name: amount for name, amount in amounts.items() if book.class_of_resource(name) is None}
        wanted = fork.requests_row(own)
        wanted[PODS] = len(waiting)
        counts = wanted > 0
        nodes = len(fork)
        free = fork.allocatable[:nodes, counts] - fork.requested[:nodes, counts]
        fits: BoolArray = np.all(free >= wanted[counts], axis=1)
        return fits

    def _shared(self, pod: PodInfo) -> tuple[str, ...]:
        """Keys of the claims that the pod may share."""
        return shared_keys(pod.pod, self._claims) if self._claims else ()
