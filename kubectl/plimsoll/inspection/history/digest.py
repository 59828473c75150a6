"""Aggregates past moves: counts and durations by policy and strategy, and by owner.

A percentile is the smallest duration that this percentage of the settled moves did not exceed (nearest rank).
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from plimsoll.inspection.history.answer import MoveDigest, OwnerMoves, PastMoveOutcome, RecordedMove
from plimsoll.records.history import STRANDED


def digest_of(moves: Iterable[RecordedMove]) -> tuple[MoveDigest, ...]:
    """Statistics of the moves of each policy and strategy, sorted by their names."""
    groups: defaultdict[tuple[str, str], list[RecordedMove]] = defaultdict(list)
    for move in moves:
        groups[move.policy, move.strategy].append(move)
    return tuple(_digest(*names, group) for names, group in sorted(groups.items()))


def _digest(policy: str, strategy: str, moves: Sequence[RecordedMove]) -> MoveDigest:
    counts = Counter(move.outcome for move in moves)
    durations = sorted(
        move.seconds for move in moves if move.outcome is PastMoveOutcome.SETTLED and move.seconds is not None
    )
    return MoveDigest(
        policy=policy,
        strategy=strategy,
        moves=len(moves),
        settled=counts[PastMoveOutcome.SETTLED],
        returned=counts[PastMoveOutcome.RETURNED],
        failed=counts[PastMoveOutcome.FAILED],
        blocked=counts[PastMoveOutcome.BLOCKED],
        cancelled=counts[PastMoveOutcome.CANCELLED],
        open=counts[PastMoveOutcome.OPEN],
        p50_seconds=percentile(durations, 50),
        p95_seconds=percentile(durations, 95),
    )


def percentile(ascending: Sequence[float], percent: int) -> float | None:
    """The smallest value that this percentage of the values do not exceed; None without values."""
    return ascending[math.ceil(percent * len(ascending) / 100) - 1] if ascending else None


def has_left(move: RecordedMove) -> bool:
    """Whether the pod is known to have left its node."""
    if move.outcome is PastMoveOutcome.FAILED:
        return move.reason in STRANDED
    return move.outcome in (PastMoveOutcome.SETTLED, PastMoveOutcome.RETURNED)


def owners_of(moves: Iterable[RecordedMove]) -> tuple[OwnerMoves, ...]:
    """The owners of pods that left, sorted by the number of moves, highest first."""
    groups: defaultdict[str, list[RecordedMove]] = defaultdict(list)
    for move in moves:
        if has_left(move):
            groups[move.workload].append(move)
    found = [
        OwnerMoves(
            workload=workload,
            moves=len(group),
            settled=sum(move.outcome is PastMoveOutcome.SETTLED for move in group),
            last=max(move.planned for move in group),
        )
        for workload, group in groups.items()
    ]
    return tuple(sorted(found, key=lambda each: (-each.moves, each.workload)))
