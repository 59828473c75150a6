"""Remembers the use of pods that have just left; their replacements are expected to use the same.

Of several pods of one workload the largest amounts count, in whatever order they left.
"""

from collections.abc import Hashable

from plimsoll.load.expectations import Basis, Expectation, expectation

_Left = tuple[Expectation, float]


class Predecessors:
    """The use of each workload's pods that left recently.

    Attributes:
        by_workload: The use of these pods by uid, and when they left.
    """

    def __init__(self) -> None:
        self.by_workload: dict[Hashable, dict[str, _Left]] = {}
        self._own: set[Hashable] = set()  #: workloads whose pods are not shared with a fork

    def fork(self) -> "Predecessors":
        """An independent copy; a workload's data is shared until either side writes."""
        twin = Predecessors()
        twin.by_workload = dict(self.by_workload)
        self._own = set()
        return twin

    def left(self, workload: Hashable, uid: str, used: Expectation, now: float) -> None:
        """Record a measured pod that has left."""
        self._writable(workload)[uid] = (used, now)

    def is_back(self, workload: Hashable, uid: str) -> Expectation | None:
        """Remove a pod that is placed again; returns its use, if it left recently."""
        if uid not in self.by_workload.get(workload, ()):
            return None
        known = self._writable(workload)
        used, _ = known.pop(uid)
        if not known:
            del self.by_workload[workload]
        return used

    def one(self, workload: Hashable, uid: str) -> Expectation | None:
        """The use of that pod of the workload, if it left recently."""
        left = self.by_workload.get(workload, {}).get(uid)
        if left is None:
            return None
        basis = Basis.MOVED if left[0].is_measured else Basis.PREDECESSOR
        return left[0]._replace(basis=basis)

    def forget(self, before: float) -> None:
        """Drop pods that left before that moment."""
        for workload, known in list(self.by_workload.items()):
            gone = [uid for uid, (_, at) in known.items() if at < before]
            if len(gone) == len(known):
                del self.by_workload[workload]
            elif gone:
                writable = self._writable(workload)
                for uid in gone:
                    del writable[uid]

    def of(self, workload: Hashable) -> Expectation | None:
        """The expected use of a pod of the workload."""
        known = self.by_workload.get(workload)
        if not known:
            return None
        amounts = [max(column) for column in zip(*(used[:6] for used, _ in known.values()), strict=True)]
        return expectation(amounts, Basis.PREDECESSOR)

    def _writable(self, workload: Hashable) -> dict[str, _Left]:
        if workload not in self._own:
            self.by_workload[workload] = dict(self.by_workload.get(workload, {}))
            self._own.add(workload)
        return self.by_workload.setdefault(workload, {})
