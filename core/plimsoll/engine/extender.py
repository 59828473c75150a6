"""Defines an HTTP extender of a profile, and which pods it is interested in.

Source: kube-scheduler v1.36, ``pkg/scheduler/extender.go``.
"""

from collections.abc import Sequence

from msgspec import Struct

from plimsoll.framework import PodInfo

#: The rejecting plugin in diagnoses of extenders; any event may help such a pod.
EXTENDER = "Extender"


class Extender(Struct, frozen=True):
    """One extender of a profile.

    Attributes:
        name: Its URL, as written in the policy.
        filter_verb: Empty when it does not filter; likewise the other verbs.
        weight: The weight of its scores.
        node_cache_capable: Whether it knows the nodes, so that names suffice.
        managed: Resources that it manages; empty: it is interested in every pod.
        ignorable: Whether its failures are ignored.
    """

    name: str
    filter_verb: str = ""
    prioritize_verb: str = ""
    preempt_verb: str = ""
    bind_verb: str = ""
    weight: int = 1
    node_cache_capable: bool = False
    managed: frozenset[str] = frozenset()
    ignorable: bool = False

    def is_interested(self, pod: PodInfo) -> bool:
        """Whether it is interested in the pod: some container requests a resource that it manages."""
        if not self.managed:
            return True
        spec = pod.pod.spec
        return any(
            not self.managed.isdisjoint(each.resources.requests)
            or not self.managed.isdisjoint(each.resources.limits)
            for each in (*spec.containers, *spec.init_containers)
        )

    @property
    def places(self) -> bool:
        """Whether it takes part in the choice of a node."""
        return bool(self.filter_verb or self.prioritize_verb)


def interested(extenders: Sequence[Extender], pod: PodInfo) -> tuple[Extender, ...]:
    """The extenders that are interested in the pod, in order, the ignorable ones last."""
    if not extenders:
        return ()
    concerned = [each for each in extenders if each.is_interested(pod)]
    return tuple(sorted(concerned, key=lambda each: each.ignorable))
