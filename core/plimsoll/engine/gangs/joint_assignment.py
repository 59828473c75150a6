"""Looks for nodes for several pods together where taking them one by one has failed: by amounts alone.

Depth first: the largest pod goes first, onto the node where it leaves the least room, and back where that
ends. The first way down is best fit, decreasing; the rest is exhaustive until the patience is used up.

Units: amounts as in the columns of the cluster; patience in nodes that are looked at.
Axis letters: M pods, N nodes, R resources.
"""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from plimsoll.model.columns.columns import BoolArray, IntArray


class Patience(Struct):
    """Number of nodes that may still be looked at."""

    looks: int


def assigned(wanted: IntArray, free: IntArray, may: BoolArray, patience: Patience) -> list[int] | None:
    """The node of each pod; None if there is no way, or none was found in time.

    Args:
        wanted: What each pod requests, shape (M, R).
        free: What each node has left, shape (N, R); it is not changed.
        may: Which pod may be on which node, shape (M, N).
        patience: Counts down.
    """
    scale = np.maximum(free.max(axis=0, initial=0), 1)
    sizes = (wanted / scale).max(axis=1, initial=0.0)
    order = [int(each) for each in np.argsort(-sizes, kind="stable")]
    if (wanted.sum(axis=0) > free.clip(0).sum(axis=0)).any():
        return None
    return _search(_Pods(wanted, may, scale), order, free.copy(), patience, {})


class _Pods(Struct, frozen=True):
    """What is wanted, and where it may be."""

    wanted: IntArray
    may: BoolArray
    scale: IntArray


def _search(
    pods: _Pods, order: Sequence[int], free: IntArray, patience: Patience, chosen: dict[int, int]
) -> list[int] | None:
    """The nodes, given those of the first pods."""
    if not order:
        return [chosen[each] for each in range(len(chosen))]
    pod, rest = order[0], order[1:]
    wanted = pods.wanted[pod]
    patience.looks -= len(free)
    if patience.looks < 0:
        return None
    fits = pods.may[pod] & (free >= wanted).all(axis=1)
    left = ((free - wanted) / pods.scale).sum(axis=1)
    seen: set[tuple[bytes, bytes]] = set()
    for row in sorted(np.flatnonzero(fits).tolist(), key=lambda each: (float(left[each]), each)):
        # A node with the same room and the same pods to come is the same choice.
        same = free[row].tobytes(), pods.may[:, row].tobytes()
        if same in seen:
            continue
        seen.add(same)
        free[row] -= wanted
        chosen[pod] = row
        found = _search(pods, rest, free, patience, chosen)
        if found is not None:
            return found
        free[row] += wanted
        del chosen[pod]
    return None
