"""Decides which readings of load are fresh and which are stale, and updates the load book from them.

The use of a node in addition to its pods (system use) is smoothed as a difference: a reading of the node less
the use of its pods, as measured, or as in the book if no source measures them. If only nodes are measured, a
node's load is therefore its smoothed reading, plus the expected use of pods that were added since, less the
use of those that left. A pod without measurements is subtracted once it must have been running when the
reading began. The first reading of a node may include pods that started just before it. Until each of them is
subtracted, the smallest difference counts rather than a smoothed one; otherwise those pods would count twice.

A refresh replaces the shares of all pods of a node together, or leaves the node alone: if neither its load,
nor its peak, nor one of its pods has changed by the dead band, its numbers stay, and so do all scores
computed from them.

Axis letters: N nodes, P placed pods, K series of readings.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from plimsoll.load.expectations import SPREAD_UNITS, Basis, Priors, workload_of
from plimsoll.load.load_book import LoadBook, load_of, peak_of
from plimsoll.load.readings import AHEAD_S, NOTHING, PER_COLUMN_UNIT, FloatArray, LoadReadings, LoadSettings
from plimsoll.load.shares import BASIS, COLUMNS, EXPECTED, PEAK, SPREAD, SUMMED, UNMEASURED, columns_of
from plimsoll.load.states import LoadState
from plimsoll.load.usage_histograms import UsageHistograms
from plimsoll.model.columns.cluster import CPU, MEMORY, Cluster
from plimsoll.model.columns.columns import BoolArray, IntArray, RowArray
from plimsoll.model.kinds.pod_info import PodTemplate
from plimsoll.usage.pod_columns import PodColumns
from plimsoll.usage.smoothed_readings import SmoothedReadings

#: Seconds from the start of a pod to the first window that includes its use.
SHOWS_AFTER_S = 30.0

#: Seconds after a node's first reading in which it may include pods that are not subtracted yet.
OPEN_S = 600.0

#: Seconds between two samples of a pod for its workload's history.
SAMPLE_S = 60.0

#: Seconds after which readings of a deleted pod, and of a workload, are dropped; and between checks.
GONE_S, DORMANT_S, LOOK_S = 600.0, 7 * 86_400.0, 600.0

PER_UNIT = np.array(PER_COLUMN_UNIT, dtype=np.int64)


@dataclass(eq=False)
class LoadKeeper:
    """Updates the load book of one cluster.

    Attributes:
        cluster: Its pods and nodes; the keeper attaches the book to it, and forks copy it.
        settings: How readings become expectations.
        pods: Smoothed readings of pods, by ``namespace/name``.
        nodes: Smoothed readings of nodes, keyed by name.
        habits: The workloads' histories.
    """

    cluster: Cluster
    settings: LoadSettings = field(default_factory=LoadSettings)
    pods: SmoothedReadings = field(init=False)
    nodes: SmoothedReadings = field(init=False)
    habits: UsageHistograms = field(init=False)
    _roster: PodColumns = field(default_factory=PodColumns, init=False)
    _node_places: tuple[tuple[int, int], RowArray] = field(init=False)
    _sampled_at: float = field(default=float("-inf"), init=False)
    _looked_at: float = field(default=float("-inf"), init=False)

    def __post_init__(self) -> None:
        settings = self.settings
        self.pods, self.nodes = SmoothedReadings(settings.half_life_s), SmoothedReadings(settings.half_life_s)
        self.habits = UsageHistograms(settings.habit_half_lives_s)
        self._node_places = (-1, -1), np.zeros(0, dtype=np.intp)
        book = LoadBook(self.cluster, Priors(settings, self.habits, 0.0))
        for pod, row in self.cluster.placed():
            book.add(pod, row)
        self.cluster.adopt(book)

    @property
    def book(self) -> LoadBook:
        """The book of the cluster."""
        return self.cluster.index(LoadBook)

    def observe(self, now: float, nodes: LoadReadings = NOTHING, pods: LoadReadings = NOTHING) -> RowArray:
        """Update the book with new readings, or without any: then only ages change.

        Returns:
            The rows whose numbers changed; the cluster's log has them.
        """
        self.pods.add(pods.until(now + AHEAD_S))
        self.nodes.add(nodes.until(now + AHEAD_S))
        book, roster = self.book, self._roster
        book.now = now
        book.predecessors.forget(now - self.settings.handed_on_s)
        settled = book.settle()
        self._take_as_read(book, settled.sources)
        roster.bring_up(settled, self.cluster, self.habits, now)
        roster.find_series(self.pods)
        if self._learn(now):
            book.priors = Priors(self.settings, self.habits, now)
        measured, stale = self._measured(now)
        columns = self._shares(book, measured, stale, now)
        changed = self._refresh(book, columns, measured | stale, now)
        book.middle = self._middle(book)
        book.kept.clear()
        self._forget(now)
        self.cluster.touch(changed)
        return changed

    def use_of(self, uid: str) -> tuple[int, int] | None:
        """Smoothed cpu and memory of a placed pod; None before it has started up, or without fresh readings.

        As of the latest refresh.
        """
        shares, roster, settings, levels = self.book.shares, self._roster, self.settings, self.pods
        at = shares.places.get(uid)
        if at is None or at >= len(roster.pods) or shares.share(at).basis is not Basis.MEASURED:
            return None
        place = roster.places[at]
        age = self.book.now - roster.started[at]
        if levels.count[place] < settings.least_readings or age < settings.warm_up_s:
            return None
        cpu, memory = np.rint(levels.level[place]).astype(int).tolist()
        return cpu, memory

    # -- pods ------------------------------------------------------------------------------------------------

    def _measured(self, now: float) -> tuple[BoolArray, BoolArray]:
        """Which pods have fresh readings, and which only older ones: shape (P,) each."""
        places = self._roster.places
        was_read = places >= 0
        at = places[was_read]
        was_read[was_read] = self.pods.count[at] > 0
        at = places[was_read]
        age = now - self.pods.taken[at]
        fresh = age <= self.pods.fresh_for(at, self.settings.freshest_s, self.settings.stalest_s)
        measured = was_read.copy()
        measured[was_read] = fresh
        return measured, was_read & ~measured

    def _shares(self, book: LoadBook, measured: BoolArray, stale: BoolArray, now: float) -> IntArray:
        """The share of each pod, shape (P, 9)."""
        roster, settings, levels = self._roster, self.settings, self.pods
        was_read = measured | stale
        at = roster.places[was_read]
        is_warm = was_read.copy()
        is_warm[was_read] = (levels.count[at] >= settings.least_readings) & (
            now - roster.started[was_read] >= settings.warm_up_s
        )
        columns = self._priors_of(book, ~is_warm)
        prior = columns[was_read]
        level, limits = levels.level[at], roster.limits[was_read]
        expected = np.where(is_warm[was_read, None], level, np.maximum(level, prior[:, EXPECTED]))
        quantile, peak = self._habit_peaks(book.priors, was_read, limits)
        hidden = self._saturated()[roster.rows[was_read]]
        expected = np.where(hidden[:, None], np.maximum(expected, quantile), expected)
        own = np.minimum(level * (1.0 + settings.peak_margin), limits)
        peak = np.maximum(np.where(peak > 0, peak, own), np.maximum(expected, level))
        found = np.empty((len(at), COLUMNS), dtype=np.int64)
        found[:, EXPECTED], found[:, PEAK] = np.rint(expected), np.rint(peak)
        found[:, SPREAD] = np.ceil(levels.variance[at] / SPREAD_UNITS**2)
        found[:, UNMEASURED] = np.where(stale[was_read, None], found[:, EXPECTED], 0)
        found[:, BASIS] = np.where(stale[was_read], Basis.STALE, Basis.MEASURED)
        columns[was_read] = found
        return columns

    def _priors_of(self, book: LoadBook, wanted: BoolArray) -> IntArray:
        """The priors of those pods, shape (P, 9); 0 for the others."""
        columns = np.zeros((len(wanted), COLUMNS), dtype=np.int64)
        known: dict[PodTemplate, IntArray] = {}
        for at in np.flatnonzero(wanted).tolist():
            template = self._roster.pods[at].template
            if template not in known:
                known[template] = columns_of(book.prior(template))
            columns[at] = known[template]
        return columns

    def _habit_peaks(
        self, priors: Priors, wanted: BoolArray, limits: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Amounts that pods stay below by their workload's history, without and with margin; 0: not known."""
        known = len(priors.peaks)
        at = self._roster.workloads[wanted]
        at = np.where((at >= 0) & (at < known), at, known)
        nothing = np.zeros((1, 2))
        quantile = np.concatenate([priors.quantiles, nothing])[at]
        return np.minimum(quantile, limits), np.minimum(np.concatenate([priors.peaks, nothing])[at], limits)

    def _learn(self, now: float) -> bool:
        """Sample the use of pods for their workloads' histories; returns whether a sample was due."""
        if now - self._sampled_at < SAMPLE_S:
            return False
        roster = self._roster
        counted = (roster.places >= 0) & (roster.workloads >= 0)
        at = roster.places[counted]
        is_new = (self.pods.count[at] > 0) & (self.pods.taken[at] > self._sampled_at)
        if not is_new.any():
            return False
        self.habits.add(roster.workloads[counted][is_new], self.pods.latest[at[is_new]], now)
        self._sampled_at = now
        return True

    # -- nodes -----------------------------------------------------------------------------------------------

    def _take_as_read(self, book: LoadBook, sources: RowArray) -> None:
        """Stop waiting, on nodes that a pod has left, for readings of pods that match the only node reading.

        That reading includes the pod's use, and no later reading of pods does: the rest is not the node's
        own.
        """
        rows = self._roster.rows
        left = np.ones(len(rows), dtype=np.bool_)
        left[sources[sources >= 0]] = False
        left &= (rows >= 0) & (rows < len(self.cluster))
        if left.any():
            system = book.exact_system[: len(self.cluster)].copy()
            system[rows[left], 2] = 0.0
            book.read(system, book.read_at[: len(system)].copy(), book.course[: len(system)].copy())

    def _places_of_nodes(self) -> RowArray:
        """The index of each row's series, shape (N,); -1: none."""
        mark = self.cluster.epoch, len(self.nodes.places)
        if self._node_places[0] != mark:
            places = np.array(
                [self.nodes.places.get(node.name, -1) for node in self.cluster.nodes], dtype=np.intp
            )
            for row in np.flatnonzero(places >= 0).tolist():
                self.nodes.begin(int(places[row]), self.cluster.nodes[row].metadata.created_s)
            self._node_places = mark, places
        return self._node_places[1]

    def _room(self) -> IntArray:
        """Shape (N, 2): allocatable cpu and memory."""
        return self.cluster.allocatable[: len(self.cluster), [CPU, MEMORY]] * PER_UNIT

    def _saturated(self) -> BoolArray:
        """Shape (N,): nodes so full that their pods' use understates what they would use."""
        places = self._places_of_nodes()
        saturated = places >= 0
        level = self.nodes.level[places[saturated]]
        saturated[saturated] = level[:, 0] > self.settings.saturated * self._room()[saturated, 0]
        return saturated

    def _read_nodes(
        self, book: LoadBook, columns: IntArray, was_read: BoolArray, now: float
    ) -> NDArray[np.int8]:
        """Renew the system use of nodes; returns the state of each, shape (N,)."""
        roster, places, rows = self._roster, self._places_of_nodes(), self._roster.rows
        expected = columns[:, EXPECTED].astype(np.float64)
        latest = np.zeros(expected.shape)
        latest[was_read] = self.pods.latest[roster.places[was_read]]
        system, read_at = book.exact_system[: len(places)].copy(), book.read_at[: len(places)].copy()
        exact, first_at, open_since = system[:, :2], system[:, 2], system[:, 3]
        # A pod that is newly measured, or is expected to use more than before, changes no node's load.
        again = roster.subtracted.any(axis=1)
        counted = np.where(was_read[:, None], latest, expected)
        exact += _by_row(len(places), rows[again], (roster.subtracted - counted)[again])
        roster.subtracted = np.where((again & ~was_read)[:, None], expected, 0.0)

        read = places >= 0
        read[read] = self.nodes.count[places[read]] > 0
        at = places[read]
        taken, began = np.zeros(len(places)), np.zeros(len(places))
        taken[read], began[read] = self.nodes.taken[at], self.nodes.taken[at] - self.nodes.window[at]
        newer = taken > read_at
        # Readings of pods may arrive after the only one of their node.
        counts = newer | (read & (taken == first_at))
        shown = ~was_read & newer[rows] & (roster.started + SHOWS_AFTER_S <= began[rows])
        roster.subtracted[shown] = expected[shown]
        used = _by_row(len(places), rows, latest + roster.subtracted)
        is_guessed = np.zeros(len(places), dtype=np.bool_)
        is_guessed[rows[roster.subtracted.any(axis=1)]] = True
        rest = self.nodes.latest[places[counts]] - used[counts]
        rest = np.where(is_guessed[counts, None], rest, np.maximum(rest, 0.0))
        is_first = (read_at == 0) | ~newer
        is_open = newer & (open_since > 0.0)
        hides = np.zeros(len(places), dtype=np.bool_)
        hides[rows[~was_read & ~roster.subtracted.any(axis=1)]] = True
        rest = np.where((is_open & hides)[counts, None], np.minimum(rest, exact[counts]), rest)
        elapsed = np.where(is_first | is_open, np.inf, taken - read_at)[counts]
        weight = (1.0 - np.exp2(-elapsed / self.settings.half_life_s))[:, None]
        exact[counts] += weight * (rest - exact[counts])
        open_since[is_open & (~hides | (taken - open_since > OPEN_S))] = 0.0
        open_since[newer & is_first & hides] = taken[newer & is_first & hides]
        first_at[counts & is_first] = taken[counts & is_first]
        read_at[newer] = taken[newer]
        course = np.zeros((len(places), 3))
        is_again = self.nodes.count[at] > 1
        course[read, 0] = np.where(is_again, self.nodes.taken[at] - self.nodes.interval[at], 0.0)
        course[:, 1:] = self._drift(rows, was_read, places)
        book.read(system, read_at, course)

        known = np.where(read_at > 0, np.int8(LoadState.STALE), np.int8(LoadState.UNKNOWN))
        fresh_for = self.nodes.fresh_for(at, self.settings.freshest_s, self.settings.stalest_s)
        is_fresh = (now - taken[read] <= fresh_for) & (read_at[read] > 0)
        known[np.flatnonzero(read)[is_fresh]] = LoadState.MEASURED
        return known

    def _drift(self, rows: RowArray, was_read: BoolArray, places: RowArray) -> FloatArray:
        """By how much recent readings of nodes exceed the smoothed ones, shape (N, 2).

        If pods are measured, pod by pod, so that an added or removed pod does not count.
        """
        found = np.zeros((len(places), 2))
        if not was_read.any():
            known = places >= 0
            found[known] = self.nodes.recent[places[known]] - self.nodes.level[places[known]]
            return found
        at = self._roster.places[was_read]
        drift = self.pods.recent[at] - self.pods.level[at]
        for resource in range(2):
            weights = drift[:, resource]
            found[:, resource] = np.bincount(rows[was_read], weights=weights, minlength=len(places))
        return found

    def _refresh(self, book: LoadBook, columns: IntArray, was_read: BoolArray, now: float) -> RowArray:
        """Write shares and sums into the book where they differ enough; returns these rows."""
        count, rows = len(self.cluster), self._roster.rows
        known = self._read_nodes(book, columns, was_read, now)
        sums = np.zeros((count, SUMMED), dtype=np.int64)
        for each in range(SUMMED):
            np.add.at(sums[:, each], rows, columns[:, each])
        system = np.rint(book.exact_system[:count, :2]).astype(np.int64)
        before = book.shares.columns
        room = np.maximum(self._room(), 1)
        band = self.settings.dead_band * room
        drift = np.abs(load_of(system, sums) - book.load[:count]) >= band
        drift |= np.abs(peak_of(system, sums) - book.peak_load[:count]) >= band
        changed = drift.any(axis=1) | (known != book.known[:count])
        moved = (np.abs(columns[:, :4] - before[:, :4]) >= np.tile(band, 2)[rows]).any(axis=1)
        moved |= (columns[:, UNMEASURED] > 0).any(axis=1) != (before[:, UNMEASURED] > 0).any(axis=1)
        changed[rows[moved]] = True
        kept = ~changed
        columns[kept[rows]] = before[kept[rows]]
        sums[kept], system[kept] = book.sums[:count][kept], book.system[:count][kept]
        book.replace(columns, sums, system, known)
        found: RowArray = np.flatnonzero(changed)
        return found

    def _middle(self, book: LoadBook) -> tuple[int, int]:
        """Median load of the measured nodes, in percent of their allocatable; 0 without any."""
        room = self._room()
        counted = (book.known[: len(room)] == LoadState.MEASURED) & (room > 0).all(axis=1)
        if not counted.any():
            return 0, 0
        shares = 100.0 * book.load[: len(room)][counted] / room[counted]
        shares.sort(axis=0)  # np.median would import numpy.ma, which takes as long as a tenth of a start
        median = (shares[(len(shares) - 1) // 2] + shares[len(shares) // 2]) / 2
        cpu, memory = np.rint(np.minimum(median, 100.0)).astype(int).tolist()
        return cpu, memory

    def _forget(self, now: float) -> None:
        """Drop readings of pods, nodes and workloads that were deleted long ago."""
        if now - self._looked_at < LOOK_S:
            return
        self._looked_at = now
        roster, pods = self._roster, self._roster.pods
        moved = self.pods.forget(now - GONE_S, {pod.key for pod in pods})
        self.nodes.forget(now - GONE_S, self.cluster.rows)
        self._node_places = (-1, -1), self._node_places[1]
        moved |= self.habits.forget(now - DORMANT_S, {workload_of(pod.template) for pod in pods})
        if moved:
            roster.place_again(self.pods, self.habits)


def _by_row(count: int, rows: RowArray, amounts: FloatArray) -> FloatArray:
    """Sums of pods' amounts by their nodes' rows, shape (count, 2)."""
    sums = np.zeros((count, 2))
    for resource in range(2):
        np.add.at(sums[:, resource], rows, amounts[:, resource])
    return sums
