"""Keeps the pods of each node in order of arrival; a cluster and its forks share them until one writes."""

from plimsoll.model.kinds.pod_info import PodInfo


class PodsByRow:
    """Pods by uid, for each row."""

    __slots__ = ("_owned", "_pods")

    def __init__(self) -> None:
        self._pods: list[dict[str, PodInfo]] = []
        self._owned: set[int] = set()

    def __len__(self) -> int:
        return len(self._pods)

    def on(self, row: int) -> dict[str, PodInfo]:
        """The pods of one row, read-only."""
        return self._pods[row]

    def writable(self, row: int) -> dict[str, PodInfo]:
        """The pods of one row, to be changed."""
        if row not in self._owned:
            self._pods[row] = dict(self._pods[row])
            self._owned.add(row)
        return self._pods[row]

    def append(self) -> None:
        """Append an empty row."""
        self._owned.add(len(self._pods))
        self._pods.append({})

    def drop_last(self) -> None:
        """Remove the last row."""
        self._pods.pop()
        self._owned.discard(len(self._pods))

    def move(self, source: int, target: int) -> None:
        """Move the pods of one row to another, whose own pods were removed."""
        self._pods[target] = self._pods[source]
        if source in self._owned:
            self._owned.add(target)
        else:
            self._owned.discard(target)

    def share(self) -> list[dict[str, PodInfo]]:
        """The pods of every row; a row is copied before it is written again."""
        self._owned = set()
        return list(self._pods)

    def fork(self) -> "PodsByRow":
        """A copy that shares all rows until either side writes."""
        twin = PodsByRow()
        twin._pods = list(self._pods)
        self._owned = set()
        return twin
