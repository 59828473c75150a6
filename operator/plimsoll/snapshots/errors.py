"""SnapshotError: a snapshot, dump or trace that cannot be read or written, in one sentence."""

from plimsoll.framework.errors import PlimsollError


class SnapshotError(PlimsollError):
    """What is wrong with a file.

    Args:
        place: The file, and the place in it.
        problem: What is wrong there, and what to do.
    """

    def __init__(self, place: str, problem: str) -> None:
        super().__init__(place, problem)
        self.place = place
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.place}: {self.problem}"
