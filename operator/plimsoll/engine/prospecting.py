"""The scheduler's view of places for strategies, on the fork of a plan."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from plimsoll.engine.decision import Ranking
from plimsoll.engine.extender import interested
from plimsoll.engine.moves import REPLACEMENT, replacement_of
from plimsoll.engine.profile import Profile
from plimsoll.framework import MAX_SCORE, Cluster, PodInfo
from plimsoll.framework.prospects import Outlook


class ForkAttempt:
    """Moves made on trial in a fork."""

    def __init__(self, fork: Cluster) -> None:
        self._fork = fork
        self._made: list[tuple[PodInfo, str]] = []

    def move(self, pod: PodInfo, target: str) -> None:
        """The pod goes, its replacement is on the target."""
        row = self._fork.row_of_pod(pod.uid)
        assert row is not None
        self._made.append((pod, self._fork.nodes[row].name))
        self._fork.displace(pod.uid)
        self._fork.place(replacement_of(pod, self._fork, target), target)

    def undo(self) -> None:
        """Everybody is back."""
        for pod, source in reversed(self._made):
            self._fork.displace(f"{REPLACEMENT}{pod.uid}")
            self._fork.place(pod, source)
        self._made.clear()


class ForkProspects:
    """What strategies may ask about places.

    Args:
        fork: The cluster with all moves made.
        profiles: By scheduler name: who places replacements.
        ranked: Where a pod could go if it left a node; None when nobody can say.
    """

    def __init__(
        self,
        fork: Cluster,
        profiles: Mapping[str, Profile],
        ranked: Callable[[PodInfo, str], Ranking | None],
    ) -> None:
        self._fork = fork
        self._profiles = profiles
        self._ranked = ranked

    def outlook(self, pod: PodInfo) -> Outlook | None:
        """Where its replacement could go; None when an extender or another scheduler decides."""
        profile = self._profiles.get(pod.pod.spec.scheduler_name)
        row = self._fork.row_of_pod(pod.uid)
        if profile is None or row is None or any(each.places for each in interested(profile.extenders, pod)):
            return None
        ranking = self._ranked(pod, self._fork.nodes[row].name)
        if ranking is None:
            return None
        totals = dict(zip(ranking.nodes, ranking.totals.tolist(), strict=True))
        return Outlook(totals, MAX_SCORE * sum(profile.weights.values()))

    @contextmanager
    def attempt(self) -> Iterator[ForkAttempt]:
        """Moves on trial."""
        attempt = ForkAttempt(self._fork)
        try:
            yield attempt
        finally:
            attempt.undo()
