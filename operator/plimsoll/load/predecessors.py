"""Predecessors are pods that have just left; their replacements will use what they used.

Of several of one workload the largest amounts count, whatever the order in which they left.
"""

from collections.abc import Hashable

from plimsoll.load.expectations import Basis, Expectation, expectation

_Left = tuple[Expectation, float]


class Predecessors:
    """What the pods of each workload used that have left a short while ago.

    Attributes:
        by_workload: Those pods by uid, and when they left.
    """

    def __init__(self) -> None:
        self.by_workload: dict[Hashable, dict[str, _Left]] = {}
        self._own: set[Hashable] = set()  #: workloads whose pods are not shared with a fork

    def fork(self) -> "Predecessors":
        """An independent copy; what is known of a workload is shared until either side writes."""
        twin = Predecessors()
        twin.by_workload = dict(self.by_workload)
        self._own = set()
        return twin

    def left(self, workload: Hashable, uid: str, used: Expectation, now: float) -> None:
        """A measured pod has left."""
        self._writable(workload)[uid] = (used, now)

    def is_back(self, workload: Hashable, uid: str) -> Expectation | None:
        """A pod is placed; what it used if it had left a short while ago."""
        if uid not in self.by_workload.get(workload, ()):
            return None
        known = self._writable(workload)
        used, _ = known.pop(uid)
        if not known:
            del self.by_workload[workload]
        return used

    def one(self, workload: Hashable, uid: str) -> Expectation | None:
        """What that pod of the workload used, if it left a short while ago."""
        left = self.by_workload.get(workload, {}).get(uid)
        if left is None:
            return None
        basis = Basis.MOVED if left[0].is_measured else Basis.PREDECESSOR
        return left[0]._replace(basis=basis)

    def forget(self, before: float) -> None:
        """Those that left before that moment say nothing any more."""
        for workload, known in list(self.by_workload.items()):
            gone = [uid for uid, (_, at) in known.items() if at < before]
            if len(gone) == len(known):
                del self.by_workload[workload]
            elif gone:
                writable = self._writable(workload)
                for uid in gone:
                    del writable[uid]

    def of(self, workload: Hashable) -> Expectation | None:
        """What a pod of the workload will use."""
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
