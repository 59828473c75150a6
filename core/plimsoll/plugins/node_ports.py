"""NodePorts: use each host port of a node at most once.

Formula: two host ports conflict when protocol and port are equal and one of the addresses is ``0.0.0.0``
(or empty), or both are equal. A node is refused when a port of the pod conflicts with one in use there.
Units: none.
Edges: ports of containers and sidecars count, those of other init containers do not; the protocol defaults to
TCP. As upstream, the ports of a node are a set: a pod removed in a simulation frees its ports even if another
pod has the same address, protocol and port.
Source: kube-scheduler v1.36, ``nodeports/node_ports.go`` and ``framework/types.go`` (HostPortInfo).
Differs: not at all; the ports in use are counted on pod events, each where it is in use.
"""

from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import ClassVar, Self

import numpy as np
from msgspec import Struct, field

from plimsoll import framework as fwk
from plimsoll.framework.columns import Container, PodIndex, RowCounts

TAKEN = "node(s) didn't have free ports for the requested pod ports"
ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - compared with, never bound to

HostPort = tuple[str, str, int]
"""Address, protocol, port."""


class HostPortIndex(PodIndex):
    """Pods of each node with a host port, counted by (address, protocol, port) and by (protocol, port)."""

    def __init__(self, _cluster: object = None) -> None:
        self.counts = RowCounts()

    def add(self, pod: fwk.PodInfo, row: int) -> None:
        """Count the pod's host ports."""
        self._count(pod, row, 1)

    def remove(self, pod: fwk.PodInfo, row: int) -> None:
        """Subtract the pod's host ports."""
        self._count(pod, row, -1)

    def move_row(self, source: int, target: int) -> None:
        """Move a node's counts to another row."""
        self.counts.move_row(source, target)

    def fork(self) -> Self:
        """A copy that shares the counts until either side writes."""
        twin = type(self)()
        twin.counts = self.counts.fork()
        return twin

    def taken(self, wanted: Iterable[HostPort], snapshot: fwk.Snapshot) -> fwk.BoolArray:
        """Where one of the ports is in use, shape (N,)."""
        taken = np.zeros(len(snapshot), dtype=np.bool_)
        places = None if snapshot.is_whole else {row: at for at, row in enumerate(snapshot.rows.tolist())}
        for address, protocol, port in wanted:
            keys: tuple[Hashable, ...] = ((protocol, port),)
            if address != ANY_ADDRESS:
                keys = ((address, protocol, port), (ANY_ADDRESS, protocol, port))
            for key in keys:
                rows = self.counts.rows(key)
                if places is None:
                    taken[list(rows)] = True
                elif len(rows) < len(places):
                    taken[[places[row] for row in rows if row in places]] = True
                else:
                    taken[[at for row, at in places.items() if row in rows]] = True
        return taken

    def _count(self, pod: fwk.PodInfo, row: int, amount: int) -> None:
        for address, protocol, port in host_ports(pod):
            self.counts.add((address, protocol, port), row, amount)
            self.counts.add((protocol, port), row, amount)


class SimulatedPorts(Struct):
    """The ports in use on nodes where pods were added or removed in a simulation, by row."""

    used: dict[int, frozenset[HostPort]] = field(default_factory=dict)

    def clone(self) -> "SimulatedPorts":
        """An independent copy."""
        return SimulatedPorts(dict(self.used))


class NodePorts(fwk.PreFilterPlugin, fwk.PreFilterExtensions, fwk.FilterPlugin, fwk.EnqueueExtensions):
    """Refuse nodes on which a requested host port is in use."""

    name: ClassVar = "NodePorts"
    declares: ClassVar = fwk.Declares(reads=fwk.Reads.ROW, only_constraints=True)

    def pre_filter(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.Status:
        """Skip if the pod requests no host port."""
        if not host_ports(pod):
            return fwk.SKIP
        state.write(SimulatedPorts())
        return fwk.SUCCESS

    def add_pod(
        self, state: fwk.CycleState, pod: fwk.PodInfo, added: fwk.PodInfo, node: int, snapshot: fwk.Snapshot
    ) -> fwk.Status:
        """Add the ports of a simulated pod."""
        used = state.read(SimulatedPorts).used
        used[node] = _used(used, node, snapshot) | frozenset(host_ports(added))
        return fwk.SUCCESS

    def remove_pod(
        self, state: fwk.CycleState, pod: fwk.PodInfo, removed: fwk.PodInfo, node: int, snapshot: fwk.Snapshot
    ) -> fwk.Status:
        """Remove the pod's ports, even if another pod of the node uses them, as upstream does."""
        used = state.read(SimulatedPorts).used
        used[node] = _used(used, node, snapshot) - frozenset(host_ports(removed))
        return fwk.SUCCESS

    def filter(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.IntArray:
        """1 where a requested port is in use, shape (N,)."""
        taken = snapshot.index(HostPortIndex).taken(host_ports(pod), snapshot)
        simulated = state.find(SimulatedPorts)
        if simulated is not None and simulated.used:
            for position, row in enumerate(snapshot.rows.tolist()):
                if row in simulated.used:
                    taken[position] = conflicts(host_ports(pod), simulated.used[row])
        return taken.astype(np.int64)

    def eased(self, template: fwk.PodTemplate) -> bool:
        """True: pods that leave only free ports."""
        return True

    def refusal(self, code: int, state: fwk.CycleState, pod: fwk.PodInfo) -> fwk.Status:
        """The only refusal of this plugin."""
        return fwk.unschedulable(TAKEN)

    def events_to_register(self) -> tuple[fwk.EventWithHint, ...]:
        """New nodes, and deletions of pods with a requested port."""
        return (
            fwk.EventWithHint(fwk.EventResource.NODE, fwk.ActionType.ADD),
            fwk.EventWithHint(
                fwk.EventResource.ASSIGNED_POD, fwk.ActionType.DELETE, fwk.HintByValue(_ports_of, _after_pod)
            ),
        )


def _after_pod(
    values: Collection[tuple[HostPort, ...]], change: fwk.ClusterEvent
) -> Collection[tuple[HostPort, ...]]:
    """The deleted pod had a port that the waiting pod requests."""
    freed = frozenset(host_ports(change.old))
    return [each for each in values if conflicts(each, freed)]


def host_ports(pod: fwk.PodInfo) -> tuple[HostPort, ...]:
    """The host ports that the pod uses or requests."""
    return _ports_of(pod.template)


def _ports_of(template: fwk.PodTemplate) -> tuple[HostPort, ...]:
    return template.memo("NodePorts.host_ports", lambda: _host_ports(template.sample.spec))


def _host_ports(spec: fwk.PodSpec) -> tuple[HostPort, ...]:
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
    """The ports in use on a node: as simulated so far, or else those of its pods."""
    if row in simulated:
        return simulated[row]
    whole = snapshot.whole
    return frozenset(port for holder in whole.pods(row) for port in host_ports(holder))


def conflicts(wanted: Iterable[HostPort], used: frozenset[HostPort]) -> bool:
    """Whether one of the ports is in use."""
    by_port: dict[tuple[str, int], set[str]] = {}
    for address, protocol, port in used:
        by_port.setdefault((protocol, port), set()).add(address)
    return any(
        (protocol, port) in by_port
        and (address == ANY_ADDRESS or not by_port[protocol, port].isdisjoint((address, ANY_ADDRESS)))
        for address, protocol, port in wanted
    )
