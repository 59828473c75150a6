"""Sums up the expected use of the pods of each node, and the state of that knowledge; a pod index.

When a pod is assumed, bound, deleted, or moved in a fork, its expectation moves immediately. The book keeps
each pod's share, so the subtracted amount is the added one. A pod without measurements counts with its prior:
the use of pods of its workload that have just left, else the workload's history, else a share of its request.

The numbers of a node change when a pod is added or removed, which the cluster logs, or at a refresh, which
logs the rows that it changes.

Axis letters: N nodes, P placed pods. Units: cpu in billionths of a core, memory in bytes.
"""

from collections.abc import Callable, Hashable

import numpy as np
from numpy.typing import NDArray

from plimsoll.load.expectations import (
    SPREAD_UNITS,
    Basis,
    Expectation,
    Priors,
    limits_of,
    workload_of,
)
from plimsoll.load.predecessors import Predecessors
from plimsoll.load.readings import FloatArray, LoadSettings
from plimsoll.load.shares import (
    COLUMNS,
    EXPECTED,
    PEAK,
    SPREAD,
    SUMMED,
    UNMEASURED,
    Settled,
    Shares,
    columns_of,
)
from plimsoll.load.states import LoadState
from plimsoll.load.usage_histograms import UsageHistograms
from plimsoll.load.used_columns import UsedColumns
from plimsoll.model.columns.columns import IntArray, PodIndex, RowArray, grown
from plimsoll.model.columns.pod_counts import HasCapacity
from plimsoll.model.kinds.pod_info import PodInfo, PodTemplate

#: Maximum number of shares that wait to be added to the sums.
MOST_WAITING = 1_000

#: A node is measured if at most one part in this many of its load is expected of unmeasured pods.
ONE_IN = 10


class LoadBook(PodIndex):
    """Expected use by node and by pod; a pod index.

    Args:
        cluster: The cluster whose pods it sums up.
        priors: Priors of pods without measurements.

    Attributes:
        system: Shape (capacity, 2) int64: the node's use in addition to the expected use of its pods;
            negative if the node uses less than that.
        used: The pods' use on each node, for scores.
        known: Shape (capacity,) int8: UNKNOWN, STALE, or MEASURED for a node with a fresh reading of its own.
        read_at: Shape (capacity,): when the latest reading of the node was taken, 0 without one.
        course: Shape (capacity, 3): when the reading before that was taken, 0 without one; and by how much
            recent readings exceed the smoothed ones: cpu, memory; of the node's pods if these are measured.
        now: The time of the latest refresh.
        middle: Median load of the measured nodes at the latest refresh in percent: cpu, memory.
        kept: Values that readers have derived from a template's prior, ``used`` and ``middle``, by signature.
            Cleared when one of the first two may have changed.
    """

    def __init__(self, cluster: HasCapacity, priors: Priors | None = None) -> None:
        self.priors = priors or _by_requests()
        self.predecessors = Predecessors()
        self.now = 0.0
        self.middle = (0, 0)
        self._base = Shares({}, [], np.zeros((0, COLUMNS), dtype=np.int64))
        self._own: dict[str, Expectation] = {}  #: shares of pods that were added after the base was made
        self._gone: set[str] = set()  #: pods of the base that have left
        self.kept: dict[bytes, Hashable] = {}
        self._is_shared = False
        self._sums: IntArray = np.zeros((cluster.capacity, SUMMED), dtype=np.int64)
        self._waiting: list[tuple[int, Expectation, int]] = []  #: row, share and sign: not in the sums yet
        self.system: IntArray = np.zeros((cluster.capacity, 2), dtype=np.int64)
        self.known: NDArray[np.int8] = np.zeros(cluster.capacity, dtype=np.int8)
        self.read_at: FloatArray = np.zeros(cluster.capacity)
        self.course: FloatArray = np.zeros((cluster.capacity, 3))
        self.used = UsedColumns(cluster.capacity)
        #: the same unrounded, and without a dead band; when it was first read; and that time too while the
        #: reading may include pods that are not subtracted, else 0
        self.exact_system: FloatArray = np.zeros((cluster.capacity, 4))

    # -- nodes, by row; Snapshot.cut makes windows of these -------------------------------------------------

    @property
    def sums(self) -> IntArray:
        """Shape (capacity, 8) int64: the sums of the shares' columns."""
        if self._waiting:
            self._file()
        return self._sums

    @property
    def load(self) -> IntArray:
        """Shape (capacity, 2): the load of each node, including all pods that the scheduler knows there."""
        return load_of(self.system, self.sums)

    @property
    def peak_load(self) -> IntArray:
        """Shape (capacity, 2): the load that each node rarely exceeds.

        The larger of the sum of its pods' peaks, and its load plus two standard deviations of the pods' sum.
        """
        return peak_of(self.system, self.sums)

    @property
    def states(self) -> IntArray:
        """Shape (capacity,): the LoadState of each node."""
        is_estimated = (self.sums[:, UNMEASURED] * ONE_IN > self.load).any(axis=1)
        is_estimated &= self.known == LoadState.MEASURED
        return np.where(is_estimated, LoadState.ESTIMATED, self.known).astype(np.int64)

    def load_on(self, row: int) -> tuple[int, int]:
        """The load of one node: cpu and memory."""
        cpu, memory = (self.system[row] + self.sums[row, EXPECTED]).tolist()
        return max(cpu, 0), max(memory, 0)

    def peak_on(self, row: int) -> tuple[int, int]:
        """The load that one node rarely exceeds."""
        one = slice(row, row + 1)
        cpu, memory = peak_of(self.system[one], self.sums[one])[0].tolist()
        return cpu, memory

    def spread_on(self, row: int) -> tuple[int, int]:
        """The standard deviation of the sum of its pods' use, assuming independence: cpu and memory."""
        cpu, memory = (np.sqrt(self.sums[row, SPREAD].astype(np.float64)) * SPREAD_UNITS).tolist()
        return int(cpu), int(memory)

    def state(self, row: int) -> LoadState:
        """The state of one node's load."""
        known = LoadState(int(self.known[row]))
        if known is LoadState.MEASURED:
            unmeasured = self.sums[row, UNMEASURED].tolist()
            if any(each * ONE_IN > all_ for each, all_ in zip(unmeasured, self.load_on(row), strict=True)):
                return LoadState.ESTIMATED
        return known

    def recent_on(self, row: int) -> tuple[int, int]:
        """The recent load of one node, with the pods that the scheduler knows there."""
        cpu, memory = (self.system[row] + self.sums[row, EXPECTED] + self.course[row, 1:]).tolist()
        return max(round(cpu), 0), max(round(memory), 0)

    def is_level(self, node_mark: Hashable) -> bool:
        """Whether ``used`` matches these nodes."""
        return self.used.mark == (node_mark, self.now, self.middle)

    def level(self, node_mark: Hashable, room_of: Callable[[], IntArray]) -> None:
        """Update ``used`` to the present nodes; their room has shape (N, 2), in the cluster's units."""
        if self.is_level(node_mark):
            return
        mark, room = (node_mark, self.now, self.middle), room_of()
        is_measured = self.known[: len(room)] == LoadState.MEASURED
        self.used.level(mark, self.middle, room, is_measured, (self.system, self.sums))
        self.kept.clear()

    # -- pods ------------------------------------------------------------------------------------------------

    def of(self, pod: PodInfo) -> Expectation:
        """The expected use of a pod: its share if it is placed, else its prior."""
        return self.share(pod.uid) or self.prior(pod.template)

    def share(self, uid: str) -> Expectation | None:
        """The share of a placed pod; None if it is not placed."""
        own = self._own.get(uid)
        if own is not None:
            return own
        place = None if uid in self._gone else self._base.places.get(uid)
        return None if place is None else self._base.share(place)

    def prior(self, template: PodTemplate) -> Expectation:
        """The expected use of an unmeasured pod of that template."""
        workload = workload_of(template)
        used = None if workload is None else self.predecessors.of(workload)
        return self.priors.of(template) if used is None else within_limits(used, template)

    # -- the protocol of pod indexes -------------------------------------------------------------------------

    def add(self, pod: PodInfo, row: int) -> None:
        """Add a placed pod."""
        share = (
            self._share_of_replacement(pod) if self.predecessors.by_workload else self.priors.of(pod.template)
        )
        self._own[pod.uid] = share
        self._count(row, share, 1)

    def remove(self, pod: PodInfo, row: int) -> None:
        """Remove a pod; its use becomes its replacement's expected use."""
        share = self._own.pop(pod.uid, None)
        if share is None:
            share = self._base.share(self._base.places[pod.uid])
            self._gone.add(pod.uid)
        if share.basis in (Basis.MEASURED, Basis.STALE, Basis.MOVED):
            self.predecessors.left(key_of(pod), pod.uid, share, self.now)
            self.kept.clear()
        self._count(row, share, -1)

    def hand_on(self, moved: str, pod: PodInfo, row: int) -> bool:
        """Count a placed pod with the use of the pod that it replaces, by uid, if only that is measured."""
        share, used = self.of(pod), self.share(moved) or self.predecessors.one(key_of(pod), moved)
        if share.is_measured or used is None or not used.is_measured:
            return False
        self._count(row, share, -1)
        if pod.uid in self._base.places:
            self._gone.add(pod.uid)
        self._own[pod.uid] = within_limits(used._replace(basis=Basis.MOVED), pod.template)
        self._count(row, self._own[pod.uid], 1)
        return True

    def _count(self, row: int, share: Expectation, sign: int) -> None:
        """Add a share to its node's sums, or subtract it."""
        # Scores need `used` for the next pod; the sums are needed only a few times a minute.
        self.used.add(row, sign * share.cpu, sign * share.memory)
        self._waiting.append((row, share, sign))
        if len(self._waiting) >= MOST_WAITING:
            self._file()

    def _file(self) -> None:
        """Add the waiting shares to the sums."""
        self._write()
        rows = [row for row, _, _ in self._waiting]
        signs = np.array([sign for _, _, sign in self._waiting], dtype=np.int64)
        amounts = np.array([columns_of(share)[:SUMMED] for _, share, _ in self._waiting])
        np.add.at(self._sums, rows, amounts * signs[:, None])
        self._waiting.clear()

    def _share_of_replacement(self, pod: PodInfo) -> Expectation:
        """The share of a pod that is back, stands in for another one, or replaces one of its workload."""
        key, holder = key_of(pod), pod.stands_in_for
        share = self.predecessors.is_back(key, pod.uid)
        if share is not None:
            self.kept.clear()
            return share
        used = None if holder is None else self.predecessors.one(key, holder.key)
        return self.prior(pod.template) if used is None else within_limits(used, pod.template)

    def move_row(self, source: int, target: int) -> None:
        """Move a node to another row."""
        self._write()
        for column in (self.sums, self.system, self.known, self.read_at, self.exact_system, self.course):
            column[target] = column[source]
        self.forget_row(source)
        self.used.grow(len(self.sums))

    def forget_row(self, row: int) -> None:
        """Clear the row of a deleted node."""
        self._write()
        for column in (self.sums, self.system, self.known, self.read_at, self.exact_system, self.course):
            column[row] = 0
        self.used.grow(len(self.sums))

    def grow(self, capacity: int) -> None:
        """Make room for more nodes."""
        self._sums, self.system = grown(self.sums, capacity), grown(self.system, capacity)
        self.known, self.read_at = grown(self.known, capacity), grown(self.read_at, capacity)
        self.exact_system, self.course = grown(self.exact_system, capacity), grown(self.course, capacity)
        self.used.grow(capacity)
        self._is_shared = False

    def fork(self) -> "LoadBook":
        """An independent copy; columns are shared until either side writes."""
        twin = LoadBook(_NO_ROWS, self.priors)
        twin.predecessors = self.predecessors.fork()
        twin.now, twin.middle = self.now, self.middle
        twin._base, twin._own, twin._gone = self._base, dict(self._own), set(self._gone)
        twin._sums, twin.system, twin.known = self.sums, self.system, self.known
        twin.read_at, twin.exact_system, twin.course = self.read_at, self.exact_system, self.course
        twin.used = self.used.fork()
        twin._is_shared = self._is_shared = True
        return twin

    def arranged(self, cluster: HasCapacity, rows: RowArray) -> "LoadBook":
        """The same for a cluster with the same pods, whose row ``n`` is ``rows[n]`` here."""
        twin = self.fork()
        twin.grow(max(cluster.capacity, len(rows)))
        count = len(rows)
        for there, here in (
            (twin.sums, self.sums),
            (twin.system, self.system),
            (twin.known, self.known),
            (twin.read_at, self.read_at),
            (twin.exact_system, self.exact_system),
            (twin.course, self.course),
        ):
            there[:count] = here[rows]
            there[count:] = 0
        return twin

    def _write(self) -> None:
        if self._is_shared:
            self._sums, self.system, self.known = self._sums.copy(), self.system.copy(), self.known.copy()
            self.read_at, self.exact_system = self.read_at.copy(), self.exact_system.copy()
            self.course = self.course.copy()
            self._is_shared = False

    # -- refreshing: the keeper's --------------------------------------------------------------------------

    def settle(self) -> Settled:
        """The shares, including pods that were added or removed since the latest call."""
        before, came = self._base, list(self._own)
        if not came and not self._gone:
            return Settled(before, np.arange(len(before.uids), dtype=np.intp))
        uids, places, sources = list(before.uids), dict(before.places), list(range(len(before.uids)))
        holes = sorted(places.pop(uid) for uid in self._gone)
        new = [(uid, -1) for uid in came]
        while len(new) < len(holes) and holes:
            # The last pod takes the index of one that left.
            if holes[-1] == len(uids) - 1:
                holes.pop()
            else:
                new.append((uids[-1], sources[-1]))
            del uids[-1], sources[-1]
        uids += [""] * (len(new) - len(holes))
        sources += [-1] * (len(new) - len(holes))
        holes += range(len(uids) - (len(new) - len(holes)), len(uids))
        for place, (uid, source) in zip(holes, new, strict=True):
            uids[place], sources[place], places[uid] = uid, source, place
        found = np.array(sources, dtype=np.intp)
        columns = (
            before.columns[found] if len(before.uids) else np.zeros((len(uids), COLUMNS), dtype=np.int64)
        )
        for uid in came:
            columns[places[uid]] = columns_of(self._own[uid])
        self._base = Shares(places, uids, columns)
        self._own, self._gone = {}, set()
        return Settled(self._base, found)

    @property
    def shares(self) -> Shares:
        """The shares of the pods that were placed at the latest ``settle``."""
        return self._base

    def read(self, exact_system: FloatArray, read_at: FloatArray, course: FloatArray) -> None:
        """Set the nodes' readings: system use, time, and course; shapes as above."""
        self._write()
        self.exact_system[: len(read_at)], self.read_at[: len(read_at)] = exact_system, read_at
        self.course[: len(read_at)] = course

    def replace(self, columns: IntArray, sums: IntArray, system: IntArray, known: NDArray[np.int8]) -> None:
        """Replace the shares that ``settle`` returned; the same shapes."""
        self._base = Shares(self._base.places, self._base.uids, columns)
        self._write()
        count = len(sums)
        self.sums[:count], self.system[:count], self.known[:count] = sums, system, known
        self.used.renew_all(self.system, self.sums)


def key_of(pod: PodInfo) -> Hashable:
    """The key by which a pod finds its predecessor: its workload's, or its own."""
    workload, holder = workload_of(pod.template), pod.stands_in_for
    if workload is not None:
        return workload
    return pod.uid if holder is None else holder.key


def _by_requests() -> Priors:
    settings = LoadSettings()
    return Priors(settings, UsageHistograms(settings.habit_half_lives_s), 0.0)


class _NoRows:
    capacity = 0


_NO_ROWS = _NoRows()


def load_of(system: IntArray, sums: IntArray) -> IntArray:
    """The load of nodes, shape (N, 2), from their system use and the sums of their pods."""
    load: IntArray = np.maximum(system + sums[:, EXPECTED], 0)
    return load


def peak_of(system: IntArray, sums: IntArray) -> IntArray:
    """The load that nodes rarely exceed, likewise."""
    spread = np.sqrt(sums[:, SPREAD].astype(np.float64)) * SPREAD_UNITS
    by_sigma = load_of(system, sums) + (2.0 * spread).astype(np.int64)
    peak: IntArray = np.maximum(np.maximum(system, 0) + sums[:, PEAK], by_sigma)
    return peak


def within_limits(used: Expectation, template: PodTemplate) -> Expectation:
    """The same use, cut to the pod's own limits."""
    cpu, memory = limits_of(template)
    return used._replace(
        cpu=min(used.cpu, cpu),
        memory=min(used.memory, memory),
        peak_cpu=min(used.peak_cpu, cpu),
        peak_memory=min(used.peak_memory, memory),
    )
