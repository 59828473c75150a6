"""Queueing hints of InterPodAffinity.

Source: kube-scheduler v1.36, ``interpodaffinity/plugin.go`` (EventsToRegister and its hints).
"""

from collections.abc import Collection

from plimsoll.framework import ActionType, ClusterEvent, EventResource, EventWithHint, PodInfo, QueueingHint
from plimsoll.framework.columns import PodTerm, TermKind


def events() -> tuple[EventWithHint, ...]:
    """Pods that come, go and change their labels, and nodes in other domains."""
    label = ActionType.UPDATE_POD_LABEL
    node = ActionType.ADD | ActionType.UPDATE_NODE_LABEL
    return (
        EventWithHint(EventResource.ASSIGNED_POD, ActionType.ADD, after_added, by_template=True),
        EventWithHint(EventResource.ASSIGNED_POD, ActionType.DELETE, after_deleted, by_template=True),
        EventWithHint(EventResource.ASSIGNED_POD, label, after_relabelled, by_template=True),
        EventWithHint(EventResource.UNSCHEDULABLE_POD, label),
        EventWithHint(EventResource.NODE, node, after_node, by_template=True),
    )


def after_added(pod: PodInfo, change: ClusterEvent) -> QueueingHint:
    """It matches all required affinity terms of the pod."""
    return QueueingHint.of(_matches(pod.template.terms_of(TermKind.REQUIRED_AFFINITY), change.new, change))


def after_deleted(pod: PodInfo, change: ClusterEvent) -> QueueingHint:
    """It matched all required anti-affinity terms of the pod, or the pod all of its own."""
    gone: PodInfo = change.old
    kind = TermKind.REQUIRED_ANTI_AFFINITY
    return QueueingHint.of(
        _matches(pod.template.terms_of(kind), gone, change)
        or _matches(gone.template.terms_of(kind), pod, change)
    )


def after_relabelled(pod: PodInfo, change: ClusterEvent) -> QueueingHint:
    """It matches all required affinity terms only now, or all required anti-affinity terms no longer."""
    old, new = change.old, change.new
    near = pod.template.terms_of(TermKind.REQUIRED_AFFINITY)
    if _matches(near, new, change) and not _matches(near, old, change):
        return QueueingHint.QUEUE
    far = pod.template.terms_of(TermKind.REQUIRED_ANTI_AFFINITY)
    return QueueingHint.of(_matches(far, old, change) and not _matches(far, new, change))


def after_node(pod: PodInfo, change: ClusterEvent) -> QueueingHint:
    """A node came into a domain of an affinity term, or is new or left one of an anti-affinity term."""
    near = pod.template.terms_of(TermKind.REQUIRED_AFFINITY)
    far = pod.template.terms_of(TermKind.REQUIRED_ANTI_AFFINITY)
    new = change.new.labels
    if change.old is None:
        return QueueingHint.of(bool(far) or any(term.topology_key in new for term in near))
    old = change.old.labels
    return QueueingHint.of(
        any(
            term.topology_key in new and old.get(term.topology_key) != new[term.topology_key] for term in near
        )
        or any(
            term.topology_key in old and old[term.topology_key] != new.get(term.topology_key) for term in far
        )
    )


def _matches(terms: Collection[PodTerm], pod: PodInfo, change: ClusterEvent) -> bool:
    """Whether a pod matches all of the terms; of none, it does not."""
    namespace = change.objects.namespaces.get(pod.namespace)
    labels = {} if namespace is None else namespace.labels
    return bool(terms) and all(term.matches(pod.namespace, pod.labels, labels) for term in terms)
