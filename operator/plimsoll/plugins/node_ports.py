"""NodePorts: a host port is taken once a node.

Formula: two host ports conflict when protocol and port are equal and one of the addresses is ``0.0.0.0``
(or empty), or both are equal. A node is refused when a port of the pod conflicts with one in use there.
Units: none.
Edges: ports of containers and sidecars count, of other init containers not; the protocol is TCP unless
given. To upstream the ports of a node are a set: a pod taken away in a simulation frees its ports even where
another pod holds the same address, protocol and port; so it does here.
Source: kube-scheduler v1.36, ``nodeports/node_ports.go`` and ``framework/types.go`` (HostPortInfo).
Differs: not at all; the ports in use are counted by column as pods come and go.
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Self

import numpy as np

from plimsoll import framework as fwk
from plimsoll.framework.columns import Cluster, Container, CountColumns, PodIndex

TAKEN = "node(s) didn't have free ports for the requested pod ports"
ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - compared with, never bound to

HostPort = tuple[str, str, int]
"""Address, protocol, port."""


class HostPortIndex(PodIndex):
    """How many pods of each node hold a host port, by (address, protocol, port) and by (protocol, port)."""

    def __init__(self, cluster: Cluster) -> None:
        self.counts = CountColumns(cluster.capacity)

    def add(self, pod: fwk.PodInfo, row: int) -> None:
        """Count the pod's host ports."""
        self._count(pod, row, 1)

    def remove(self, pod: fwk.PodInfo, row: int) -> None:
        """Count them no more."""
        self._count(pod, row, -1)

    def move_row(self, source: int, target: int) -> None:
        """Follow a node to another row."""
        self.counts.move_row(source, target)

    def grow(self, capacity: int) -> None:
        """Make room for more nodes."""
        self.counts.grow(capacity)

    def fork(self) -> Self:
        """A copy that shares columns until either side writes."""
        twin = type(self).__new__(type(self))
        twin.counts = self.counts.fork()
        return twin

    def used(self, key: Hashable, snapshot: fwk.Snapshot) -> fwk.IntArray | None:
        """Holders a node, shape (N,); None when it was never used."""
        column = self.counts.columns.get(key)
        return None if column is None else snapshot.cut(column)

    def _count(self, pod: fwk.PodInfo, row: int, amount: int) -> None:
        for address, protocol, port in host_ports(pod):
            self.counts.add((address, protocol, port), row, amount)
            self.counts.add((protocol, port), row, amount)


@dataclass(slots=True)
class SimulatedPorts:
    """The ports in use on nodes where pods were added or removed in a simulation, by row."""

    used: dict[int, frozenset[HostPort]] = field(default_factory=dict)

    def clone(self) -> "SimulatedPorts":
        """An independent copy."""
        return SimulatedPorts(dict(self.used))


class NodePorts(fwk.PreFilterPlugin, fwk.PreFilterExtensions, fwk.FilterPlugin, fwk.EnqueueExtensions):
    """Refuse nodes on which a wanted host port is in use."""

    name: ClassVar = "NodePorts"
    reads: ClassVar = fwk.Reads.ROW
    framed: ClassVar = True

    def pre_filter(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.Status:
        """Skip when the pod wants no host port."""
        if not host_ports(pod):
            return fwk.SKIP
        state.write(SimulatedPorts())
        return fwk.SUCCESS

    def add_pod(
        self, state: fwk.CycleState, pod: fwk.PodInfo, added: fwk.PodInfo, node: int, snapshot: fwk.Snapshot
    ) -> fwk.Status:
        """Its ports are in use."""
        used = state.read(SimulatedPorts).used
        used[node] = _used(used, node, snapshot) | frozenset(host_ports(added))
        return fwk.SUCCESS

    def remove_pod(
        self, state: fwk.CycleState, pod: fwk.PodInfo, removed: fwk.PodInfo, node: int, snapshot: fwk.Snapshot
    ) -> fwk.Status:
        """Rejects nodes where another pod uses its ports."""
        used = state.read(SimulatedPorts).used
        used[node] = _used(used, node, snapshot) - frozenset(host_ports(removed))
        return fwk.SUCCESS

    def filter(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.IntArray:
        """1 where a wanted port is in use, shape (N,)."""
        index = snapshot.index(HostPortIndex)
        taken = np.zeros(len(snapshot), dtype=np.bool_)
        for address, protocol, port in host_ports(pod):
            keys: tuple[Hashable, ...] = ((protocol, port),)
            if address != ANY_ADDRESS:
                keys = ((address, protocol, port), (ANY_ADDRESS, protocol, port))
            for key in keys:
                used = index.used(key, snapshot)
                if used is not None:
                    taken |= used > 0
        simulated = state.find(SimulatedPorts)
        if simulated is not None and simulated.used:
            for position, row in enumerate(snapshot.rows.tolist()):
                if row in simulated.used:
                    taken[position] = conflicts(host_ports(pod), simulated.used[row])
        return taken.astype(np.int64)

    def eased(self, template: fwk.PodTemplate) -> bool:
        """Pods that leave free their ports and take none."""
        return True

    def refusal(self, code: int, state: fwk.CycleState, pod: fwk.PodInfo) -> fwk.Status:
        """The only refusal there is."""
        return fwk.unschedulable(TAKEN)

    def events_to_register(self) -> tuple[fwk.EventWithHint, ...]:
        """New nodes, and pods that held a wanted port."""
        return (
            fwk.EventWithHint(fwk.EventResource.NODE, fwk.ActionType.ADD),
            fwk.EventWithHint(
                fwk.EventResource.ASSIGNED_POD, fwk.ActionType.DELETE, _after_pod, by_template=True
            ),
        )


def _after_pod(pod: fwk.PodInfo, change: fwk.ClusterEvent) -> fwk.QueueingHint:
    """The pod that left held a port that this one wants."""
    return fwk.QueueingHint.of(conflicts(host_ports(pod), frozenset(host_ports(change.old))))


def host_ports(pod: fwk.PodInfo) -> tuple[HostPort, ...]:
    """The host ports that the pod holds, or wants."""
    return pod.template.memo("NodePorts.host_ports", lambda: _host_ports(pod))


def _host_ports(pod: fwk.PodInfo) -> tuple[HostPort, ...]:
    spec = pod.pod.spec
    running: tuple[Container, ...] = (
        *spec.containers,
        *(container for container in spec.init_containers if container.is_sidecar),
    )
    return tuple(
        (port.host_ip or ANY_ADDRESS, port.protocol or "TCP", port.host_port)
        for container in running
        for port in container.ports
        if port.host_port > 0
    )


def _used(
    simulated: Mapping[int, frozenset[HostPort]], row: int, snapshot: fwk.Snapshot
) -> frozenset[HostPort]:
    """The ports in use on a node: as simulated so far, or as its pods hold them."""
    if row in simulated:
        return simulated[row]
    whole = snapshot.whole
    return frozenset(port for holder in whole.pods(row) for port in host_ports(holder))


def conflicts(wanted: Iterable[HostPort], used: frozenset[HostPort]) -> bool:
    """Whether one of the ports is taken."""
    return any(
        protocol == other_protocol
        and port == other_port
        and (ANY_ADDRESS in (address, other) or address == other)
        for address, protocol, port in wanted
        for other, other_protocol, other_port in used
    )
