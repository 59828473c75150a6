"""MoveWatcher turns watch events of pods into events of moves."""

from collections.abc import Sequence

from plimsoll.model.kinds.watch_event import PodDeleted, PodUpdated, WatchEvent
from plimsoll.rebalancing.moves.events import Event, PodGone, PodTerminating
from plimsoll.rebalancing.moves.executor import MoveExecutor
from plimsoll.rebalancing.moves.sightings import Sightings


class MoveWatcher:
    """Watches the pods of moves and their replacements.

    Args:
        executor: Takes the events.
        sightings: Of each way of moving pods.
    """

    def __init__(self, executor: MoveExecutor, sightings: Sequence[Sightings]) -> None:
        self._executor = executor
        self._sightings = sightings

    def observe(self, event: WatchEvent) -> None:
        """Something happened to a pod, or a ReplicaSet has come into sight."""
        found: list[Event] = list(self._departures(event))
        for each in self._sightings:
            found += each.observe(event)
        if found:
            self._executor.post(*found)

    def _departures(self, event: WatchEvent) -> Sequence[Event]:
        """Whether a pod that is moved goes, or is gone."""
        machine = self._executor.machine
        match event:
            case PodDeleted(pod):
                return [PodGone(state.key) for state in machine.of_pod(pod.uid)]
            case PodUpdated(_, pod) if pod.is_terminal:
                return [PodGone(state.key, deleted=False) for state in machine.of_pod(pod.uid)]
            case PodUpdated(_, pod) if pod.is_terminating:
                return [PodTerminating(state.key) for state in machine.of_pod(pod.uid)]
            case _:
                return ()
