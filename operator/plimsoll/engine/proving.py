"""What a ranking of places proves: that a replacement goes to another, better node; or why it would not."""

from collections.abc import Callable

from plimsoll.engine.decision import Ranking
from plimsoll.framework.strategy import Candidate, Refusal

IsTarget = Callable[[str], bool]
"""Whether replacements may be expected on the node of this name."""


def unexpected(source: str, ranking: Ranking, margin: int, is_target: IsTarget) -> Refusal | None:
    """Why the scheduler would not put the replacement on a better node.

    Args:
        source: The node that the pod runs on.
        ranking: Of the replacement.
        margin: Points by which the target's total must at least beat that of the pod's own node.
        is_target: Of the policy.
    """
    best = ranking.best
    if not best:
        return Refusal("NoFeasibleNode", str(ranking.diagnosis))
    if best == (source,) and len(ranking) == 1:
        return Refusal("NoOtherNode", f"node {source}, its own, is the only feasible one")
    highest = int(ranking.totals.max())
    if source in best:
        return Refusal(
            "WouldReturn",
            f"the scheduler may put it on node {source} again: no other node has a better score"
            f" than its {highest}",
        )
    own = ranking.total_of(source)
    if own is not None and highest - own < margin:
        return Refusal(
            "SmallGain",
            f"node {best[0]} beats its own node by {highest - own} points, the policy asks for {margin}",
        )
    other = next((name for name in best if not is_target(name)), "")
    if other:
        return Refusal(
            "NotATarget", f"the scheduler may put it on node {other}, which the policy names no target"
        )
    return None


def not_sent(candidate: Candidate, ranking: Ranking, is_target: IsTarget) -> Refusal | None:
    """Why the replacement cannot be sent to the target that the strategy chose."""
    target = candidate.target
    if target == candidate.node:
        return Refusal("NoOtherNode", f"node {target} is its own")
    if ranking.total_of(target) is None:
        why = f": {ranking.diagnosis}" if ranking.diagnosis else ""
        return Refusal("NotFeasible", f"node {target} is not feasible for it any more{why}")
    if not is_target(target):
        return Refusal("NotATarget", f"the policy names node {target} no target")
    return None


def narrowed(ranking: Ranking, beside: Ranking, source: str, is_target: IsTarget) -> Ranking:
    """The pod's own node, and the targets that take the replacement while the pod still runs.

    Args:
        ranking: Of the cluster without the pod, as it will be. Its scores count: beside itself, a pod
            finds every other node better than it is.
        beside: Of the cluster with the pod, as it is until the replacement is ready.
        source: The node that the pod runs on.
        is_target: Of the policy.
    """
    kept = [
        at
        for at, name in enumerate(ranking.nodes)
        if name == source or (beside.total_of(name) is not None and is_target(name))
    ]
    return Ranking(
        ranking.cluster,
        ranking.rows[kept],
        ranking.totals[kept],
        None if kept else ranking.diagnosis or beside.diagnosis,
    )
