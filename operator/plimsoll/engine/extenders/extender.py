"""Defines an HTTP extender of a profile, and which pods concern it.

Source: kube-scheduler v1.36, ``pkg/scheduler/extender.go``.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from plimsoll.framework import PodInfo

#: Who rejected a pod, in diagnoses: any event may help it.
EXTENDER = "Extender"


@dataclass(frozen=True, slots=True)
class Extender:
    """One extender of a profile.

    Attributes:
        name: Its URL, as written in the policy.
        filter_verb: Empty when it does not filter; likewise the other verbs.
        weight: Of its scores.
        node_cache_capable: It knows the nodes: names are enough.
        managed: Resources that it looks after; empty: every pod concerns it.
        ignorable: What it fails at is done without it.
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
        """Whether the pod concerns it: some container asks for something that it manages."""
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
        """Whether it has a say in where a pod goes."""
        return bool(self.filter_verb or self.prioritize_verb)


def interested(extenders: Sequence[Extender], pod: PodInfo) -> tuple[Extender, ...]:
    """Those that the pod concerns, in order, the ignorable ones last."""
    if not extenders:
        return ()
    concerned = [each for each in extenders if each.is_interested(pod)]
    return tuple(sorted(concerned, key=lambda each: each.ignorable))
