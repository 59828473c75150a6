"""Keeps pending pods of other replicas from the subscribers of events until they matter here.

A pod that waits for another replica takes no room and is not scheduled here, so it is kept in
``Cache.elsewhere``. Once it has a node it is passed on as if it had been created on that node. Half of all
pods are of this kind, and each would pass twenty subscribers that do not use it.

Pods that may matter here are passed on immediately: members of a gang, pods with a nomination or with a
request to be bound here, terminating pods, and all pods while this replica follows moves, whose replacements
they may be. When the served scheduler names change, kept pods that are scheduled here now are passed on.
"""

from collections.abc import Sequence, Sized
from dataclasses import dataclass

from plimsoll.cluster.cache import Cache
from plimsoll.framework import Pod
from plimsoll.model.kinds.deployment import SURGED
from plimsoll.model.kinds.pod_group import group_key
from plimsoll.model.kinds.watch_event import PodAdded, PodDeleted, PodUpdated, WatchEvent
from plimsoll.policies.served_profiles import ServedProfiles
from plimsoll.scheduling.shared_nodes.request import requested_node


@dataclass(eq=False)
class PodsElsewhere:
    """Filters pod events."""

    _served: ServedProfiles
    _cache: Cache
    _moves: Sized  #: the moves that this replica follows

    def sifted(self, events: Sequence[WatchEvent]) -> Sequence[WatchEvent]:
        """The events to pass on; pods that got their nodes come first, in one batch.

        The order of the events of each pod stays.
        """
        kept = self._cache.elsewhere
        if not kept and not self._served.elsewhere:
            return events
        passed: list[WatchEvent] = []
        first: list[WatchEvent] = self.released() if self._moves else []
        for event in events:
            match event:
                case PodAdded(pod) if self._is_kept(pod):
                    kept[pod.metadata.uid] = pod
                case PodUpdated(_, pod) if kept.pop(pod.metadata.uid, None) is not None:
                    if self._is_kept(pod):
                        kept[pod.metadata.uid] = pod
                    else:
                        first.append(PodAdded(pod))
                case PodDeleted(pod) if kept.pop(pod.metadata.uid, None) is not None:
                    pass
                case _:
                    passed.append(event)
        return first + passed

    def released(self) -> list[WatchEvent]:
        """The kept pods that are to be passed on now."""
        kept = self._cache.elsewhere
        found = [pod for pod in kept.values() if not self._is_kept(pod)]
        for pod in found:
            del kept[pod.metadata.uid]
        return [PodAdded(pod) for pod in found]

    def _is_kept(self, pod: Pod) -> bool:
        spec, meta, status = pod.spec, pod.metadata, pod.status
        return (
            not spec.node_name
            and spec.scheduler_name in self._served.elsewhere
            and not self._moves
            and not status.nominated_node_name
            and meta.deletion_timestamp is None
            and not pod.is_terminal
            and SURGED not in meta.annotations
            and not group_key(pod)
            and not (status.conditions and requested_node(pod))
        )
