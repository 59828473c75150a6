"""ProcessDeeds are what happens to processes, their clocks, and the API server."""

from __future__ import annotations

from simulation.deeds.scene import Scene, Way
from simulation.faults import FaultKind

#: How fast a clock may go, next to the API server's. A leader that stops ten of its seconds after
#: its last renewal, and a candidate that waits for fifteen, still do not meet (docs/high-availability.md).
RATES = (0.9, 1.1)

#: Seconds that one step of a slow processor takes.
STEP_S = 12.0


#: Seconds by which the watches of one resource lag.
LAG_S = 60.0


class ProcessDeeds:
    """Deeds of machines that run processes.

    Attributes:
        ways: How each is done.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._random = scene.random
        self.ways: dict[FaultKind, Way] = {
            FaultKind.COMPACTION: self._compact,
            FaultKind.API_RESTART: lambda: scene.network.restart_server(self._random.uniform(0.1, 20.0)),
            FaultKind.REPLICA_KILLED: lambda: self._random.choice(scene.replicas).kill(),
            FaultKind.REPLICA_PAUSED: lambda: self._random.choice(scene.replicas).pause(
                self._random.choice((0.05, 2.0, 12.0, 30.0))
            ),
            FaultKind.REPLICA_SLOW: lambda: self._random.choice(scene.replicas).slow_step(
                STEP_S, self._random.randrange(1, 40)
            ),
            FaultKind.REPLICA_STOPPED: lambda: self._random.choice(scene.replicas).stop(),
            FaultKind.RESOURCE_LAGS: self._delay,
            FaultKind.CLOCK_JUMP: self._jump,
            FaultKind.CLOCK_RATE: self._change_rate,
        }

    def _compact(self) -> None:
        store = self._scene.api.store
        for name, _ in list(store.everything()):
            collection = store.collection(name)
            collection.changes.clear()
            collection.complete_since = store.revision

    def _delay(self) -> bool:
        watched = self._scene.network.watched_paths()
        if not watched:
            return False
        path = self._random.choice(watched)
        self._scene.network.delay(path, LAG_S)
        self._scene.view.delay(_collection(path), self._scene.network.loop.time(), LAG_S)
        self._scene.later(lambda: self._scene.network.delay(path, 0.0), (LAG_S, LAG_S))
        return True

    def _jump(self) -> None:
        self._random.choice(self._scene.replicas).clock.ahead_s += self._random.uniform(-3600.0, 3600.0)

    def _change_rate(self) -> None:
        clock = self._random.choice(self._scene.replicas).clock
        before = clock.rate
        clock.run_at(self._random.choice(RATES))
        self._scene.later(lambda: clock.run_at(before))


def _collection(path: str) -> str:
    """The collection of a path that is watched: pods, or deployments.apps."""
    parts = path.strip("/").split("/")
    return f"{parts[-1]}.{parts[1]}" if parts[0] == "apis" else parts[-1]
