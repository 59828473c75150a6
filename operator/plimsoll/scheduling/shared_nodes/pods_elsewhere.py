"""Keeps pending pods of other replicas from the subscribers of events until they matter here.

A pod that waits for another replica takes no room, and is not this one's work: it is kept in
``Cache.elsewhere``. Once it has a node it is passed on as a pod that came there, as if the watch had not
shown it before. Half of all pods are such, and each would pass twenty subscribers that have no use for it.

Passed on immediately are pods that may matter here: of a gang, with a nomination, with a request to be bound
here, on their way out, and all of them while this replica follows moves, whose replacements they may be.
When other scheduler names are served here, what was kept and waits elsewhere no longer is passed on.
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
    """Sifts the events of pods."""

    _served: ServedProfiles
    _cache: Cache
    _moves: Sized  #: the moves that this replica follows

    def sifted(self, events: Sequence[WatchEvent]) -> Sequence[WatchEvent]:
        """What is passed on of these events; pods that have come to their nodes first, in one row.

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
        """What was kept, and is not to be kept any longer."""
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
