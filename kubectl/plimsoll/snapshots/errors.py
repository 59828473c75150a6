"""SnapshotError: a snapshot or dump cannot be read or written; explained in one sentence."""

from plimsoll.framework.errors import PlimsollError


class SnapshotError(PlimsollError):
    """A problem of a file.

    Args:
        place: The file, and the position in it.
        problem: The problem and its remedy.
    """

    def __init__(self, place: str, problem: str) -> None:
        super().__init__(place, problem)
        self.place = place
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.place}: {self.problem}"
