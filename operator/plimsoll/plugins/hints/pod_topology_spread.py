"""Queueing hints of PodTopologySpread.

Source: kube-scheduler v1.36, ``podtopologyspread/plugin.go`` (EventsToRegister and its hints).
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from plimsoll.framework import (
    ActionType,
    ClusterEvent,
    ClusterObjects,
    EventResource,
    EventWithHint,
    Node,
    PodInfo,
    PodTemplate,
    QueueingHint,
)


class SpreadState(Protocol):
    """What the hints read of a constraint."""

    @property
    def topology_key(self) -> str:
        """The node label whose values are the domains."""

    def means(self, pod: PodInfo) -> bool:
        """Whether a pod is counted."""


class SpreadHints:
    """The hints.

    Args:
        hard: The constraints of a template that refuse nodes.
    """

    def __init__(self, hard: Callable[[PodTemplate, ClusterObjects], Sequence[SpreadState]]) -> None:
        self._hard = hard

    def events(self) -> tuple[EventWithHint, ...]:
        """Pods that are counted, nodes that make domains, and the pod's own labels and tolerations."""
        comes_or_goes = ActionType.ADD | ActionType.DELETE
        label, toleration = ActionType.UPDATE_POD_LABEL, ActionType.UPDATE_POD_TOLERATION
        node = comes_or_goes | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_TAINT
        assigned, own = EventResource.ASSIGNED_POD, EventResource.UNSCHEDULABLE_POD
        return (
            EventWithHint(assigned, comes_or_goes, self.after_pod, by_template=True),
            EventWithHint(EventResource.POD, label, self.after_relabelled, by_template=True),
            EventWithHint(own, toleration, self.after_toleration, by_template=True),
            EventWithHint(EventResource.NODE, node, self.after_node, by_template=True),
        )

    def after_pod(self, pod: PodInfo, change: ClusterEvent) -> QueueingHint:
        """Some constraint of the pod counts it."""
        other = change.old if change.new is None else change.new
        return QueueingHint.of(any(each.means(other) for each in self._of(pod, change)))

    def after_relabelled(self, pod: PodInfo, change: ClusterEvent) -> QueueingHint:
        """Some constraint of the pod counts it only now, or no longer."""
        return QueueingHint.of(
            any(each.means(change.old) != each.means(change.new) for each in self._of(pod, change))
        )

    def after_toleration(self, pod: PodInfo, change: ClusterEvent) -> QueueingHint:
        """Some constraint of the pod leaves out nodes whose taints are not tolerated."""
        spec = pod.pod.spec
        return QueueingHint.of(
            any(
                each.node_taints_policy == "Honor" and each.when_unsatisfiable == "DoNotSchedule"
                for each in spec.topology_spread_constraints
            )
        )

    def after_node(self, pod: PodInfo, change: ClusterEvent) -> QueueingHint:
        """A node with all the topology keys came, went, or changed one of them or its taints."""
        keys = {each.topology_key for each in self._of(pod, change)}
        old: Node | None = change.old
        new: Node | None = change.new
        had = old is not None and keys <= old.labels.keys()
        has = new is not None and keys <= new.labels.keys()
        if old is None or new is None:
            return QueueingHint.of(had or has)
        if had != has:
            return QueueingHint.QUEUE
        moved = any(old.labels.get(key) != new.labels.get(key) for key in keys)
        return QueueingHint.of(has and (moved or old.spec.taints != new.spec.taints))

    def _of(self, pod: PodInfo, change: ClusterEvent) -> Sequence[SpreadState]:
        return self._hard(pod.template, change.objects)
