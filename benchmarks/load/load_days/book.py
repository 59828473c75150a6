"""BookFeed keeps the product's load book by the readings of a world, and tells how good its forecasts are."""

from dataclasses import dataclass, field

import numpy as np

from load_days.readings import Readings
from load_days.traces import SAMPLE_S, Floats
from load_days.world import DAWN, Placement, World
from plimsoll.load.readings import NOTHING, LoadReadings, LoadSettings
from plimsoll.usage.load_keeper import LoadKeeper

#: Seconds over which the metrics API averages, and of what is foretold of a pod and of a node.
WINDOW_S, POD_AHEAD_S, NODE_AHEAD_S = 30.0, 1_800.0, 3_600.0


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a pod was expected to use when it was placed, in milli-cores.

    Attributes:
        expected: By the book; ``by_request`` is 85 % of the request.
        used: The mean of the half hour after it.
    """

    expected: float
    by_request: float
    used: float
    is_replacement: bool


@dataclass(frozen=True, slots=True)
class ForecastFigures:
    """How good forecasts were.

    Attributes:
        book: Mean error of replacements' expected use by the mean of what they used, in percent.
        by_request: The same of 85 % of the request.
        book_new: Of pods that replace none, by the book; ``by_request_new`` by their request.
        covered: Percent of node-hours in which the node stayed below its peak load, with its pods of then.
        above: By how much the peak load was above the hour's maximum, mean in points of the node.
    """

    book: float = 0.0
    by_request: float = 0.0
    book_new: float = 0.0
    by_request_new: float = 0.0
    covered: float = 0.0
    above: float = 0.0


@dataclass(slots=True)
class BookFeed:
    """Readings in, forecasts judged.

    Attributes:
        keeper: Of the world's cluster.
    """

    world: World
    settings: LoadSettings
    keeper: LoadKeeper = field(init=False)
    _forecasts: list[Forecast] = field(default_factory=list, init=False)
    _gaps: list[float] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self.keeper = LoadKeeper(self.world.cluster, self.settings)

    def learn(self, found: Readings | None) -> None:
        """Readings have arrived, or should have."""
        now = DAWN + self.world.now
        if found is None:
            self.keeper.observe(now)
            return
        known = np.flatnonzero(~np.isnan(found.node_cpu))
        nodes = _readings(
            [self.world.names[each] for each in known.tolist()],
            found.node_cpu[known],
            found.node_memory[known],
            found.taken,
        )
        keys = [self.world.by_slot[slot].info.key for slot in found.slots.tolist()]
        self.keeper.observe(now, nodes, _readings(keys, found.cpu, found.memory, found.taken))

    def placed(self, found: Placement) -> None:
        """A pod was placed just now: what is it expected to use, and what will it?"""
        world, tenant = self.world, found.tenant
        if tenant.ends - world.now < POD_AHEAD_S or tenant.shape.fixed:
            return
        expected = self.keeper.book.of(tenant.info).cpu / 10**6
        used = float(world.demand.series(tenant.slot, world.now, int(POD_AHEAD_S / SAMPLE_S) + 1).mean())
        self._forecasts.append(Forecast(expected, 0.85 * tenant.shape.cpu, used, tenant.heir_of >= 0))

    def judge_peaks(self) -> None:
        """Compare each node's peak load with the next hour of the pods that are on it."""
        world = self.world
        steps = int(NODE_AHEAD_S / SAMPLE_S) + 1
        coming = np.zeros((len(world.names), steps))
        for slot in world.running.tolist():
            series = world.demand.series(slot, world.now, steps)
            series[int((world.by_slot[slot].ends - world.now) / SAMPLE_S) + 1 :] = 0.0
            coming[world.node_of[slot]] += series
        peaks = self.keeper.book.peak_load[: len(world.cluster), 0] / 10**6
        self._gaps += ((peaks - coming[world.numbers].max(axis=1)) / world.traces.node_cpu).tolist()

    def figures(self) -> ForecastFigures:
        """How good the forecasts were."""
        errors = []
        for is_replacement in (True, False):
            known = [each for each in self._forecasts if each.is_replacement is is_replacement]
            used = max(sum(each.used for each in known), 1e-9)
            errors.append(100 * sum(abs(each.expected - each.used) for each in known) / used)
            errors.append(100 * sum(abs(each.by_request - each.used) for each in known) / used)
        gaps = np.array(self._gaps) if self._gaps else np.zeros(1)
        return ForecastFigures(
            book=errors[0],
            by_request=errors[1],
            book_new=errors[2],
            by_request_new=errors[3],
            covered=float((gaps >= 0).mean() * 100),
            above=float(gaps.mean() * 100),
        )


def _readings(names: list[str], cpu: Floats, memory: Floats, taken: float) -> LoadReadings:
    if not names:
        return NOTHING
    amounts = np.column_stack([cpu * 10**6, memory]).astype(np.float64)
    moments = np.full(len(names), DAWN + taken)
    return LoadReadings(names, amounts, moments, np.full(len(names), WINDOW_S))
