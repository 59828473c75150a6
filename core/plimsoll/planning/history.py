"""Decides by past moves what rests: owners held back, budgets in back-off, pauses of policies.

A move is fruitless if its replacement returned to the node it left or was not ready in time, or if the API
server refused the eviction for a reason other than a budget. A move of planner Optimal is also fruitless if
the replacement is on a node other than planned, as the same move would be planned again and again. Then

* its owner and strategy are held back, for ten minutes after the first such move and twice as long after
  each further one in a row, a day at most; after the fifth the strategy is suspended for that owner;
* a policy whose last five moves were all fruitless rests for an hour, then tries one.

A balancing strategy does not move a pod to a node that it moved one of the same owner away from within the
hour, as that would be ping-pong. A PodDisruptionBudget that blocked an eviction is not tried again for half a
minute, twice as long after each further refusal within the hour, half an hour at most.

Nothing is stored here: the records of past moves are the memory. It therefore outlives the process, and
deleting records clears it.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime
from enum import Enum

from msgspec import Struct

from plimsoll.framework.descheduling.proposals import Refusal
from plimsoll.model.counted import counted

#: Seconds that an owner and strategy are held back after the first fruitless move, and the maximum.
HOLD_BACK_S, MAX_HOLD_BACK_S = 600.0, 86_400.0

#: Fruitless moves in a row after which a strategy is suspended for an owner.
SUSPENDED_AFTER = 5

#: Seconds in which a balancing strategy does not return an owner's pod to a node that one has left.
PING_PONG_S = 3_600.0

#: Seconds that a budget is left alone after its first refusal, the maximum, and when refusals expire.
BUDGET_S, MAX_BUDGET_S, BUDGET_MEMORY_S = 30.0, 1_800.0, 3_600.0

#: Fruitless moves in a row after which a policy rests, and the seconds that it rests.
REST_AFTER, REST_S = 5, 3_600.0


class MoveOutcome(Enum):
    """How a move ended."""

    SETTLED = "settled"
    RETURNED = "returned"  #: the replacement is on the node that was left
    ASTRAY = "astray"  #: the replacement is on a node other than the plan as a whole requires
    STRANDED = "stranded"  #: the replacement was not ready in time
    REFUSED = "refused"  #: the API server refused it; nothing was evicted
    BLOCKED = "blocked"  #: a PodDisruptionBudget blocked it; nothing was evicted


class PastMove(Struct, frozen=True):
    """A move that has ended.

    Attributes:
        owner: Key of the workload.
        name: The workload's name, for people.
        source: The node that the pod left.
        target: The replacement's node; "" without one.
        ended: Seconds since the epoch.
        budget: The PodDisruptionBudget that blocked it (``namespace/name``), or "".
        controller: Key of the pod's controller if that is not the workload: the ReplicaSet of a Deployment
            that surged, or "". Limits from this move hold for both.
        came_true: For a forecast, whether the replacement went to the expected node or one as good.
    """

    policy: str
    strategy: str
    owner: str
    name: str
    source: str
    fate: MoveOutcome
    ended: float
    budget: str = ""
    target: str = ""
    controller: str = ""
    came_true: bool | None = None


class UnreadyReplacement(Struct, frozen=True):
    """A pod of an owner that was made after a move of that owner's pods, and is not ready yet.

    Attributes:
        uid: Of the pod.
        pod: Its key.
        why: Why it is not ready, in a clause.
        record: Key of the move's record, which is kept meanwhile.
    """

    uid: str
    pod: str
    why: str
    record: str

    @property
    def refusal(self) -> Refusal:
        """Why no other pod of the owner is moved."""
        return Refusal(
            "ReplacementNotReady",
            f"pod {self.pod} was made after a pod of the same owner was moved, and is not ready: {self.why};"
            " no further one is moved until it is",
        )


#: How a fruitless move ended, for sentences.
_ENDS = {
    MoveOutcome.RETURNED: "came back to node {source}",
    MoveOutcome.ASTRAY: "was placed on another node than the plan was made for",
    MoveOutcome.STRANDED: "was not ready in time",
    MoveOutcome.REFUSED: "was refused by the API server",
}


#: Number of forecasts below which their share of hits says nothing.
FEWEST_FORECASTS = 10


#: Seconds within which an autoscaler removes an emptied node; closed nodes are opened then.
REMOVED_WITHIN_S = 900.0

#: Seconds for which no further node is emptied after one that stayed.
LEFT_BEHIND_S = 86_400.0

#: Seconds for which it is known that a strategy has moved pods to a node.
FILLED_S = 86_400.0


class MoveHistory:
    """The past moves as of one moment, and the restrictions that follow.

    Args:
        now: Seconds since the epoch.
    """

    def __init__(self, past: Iterable[PastMove] = (), now: float = 0.0) -> None:
        self._now = now
        self._fruitless: dict[tuple[str, str], list[PastMove]] = {}  # in a row, by owner and strategy
        self._in_a_row: dict[str, list[PastMove]] = {}  # by policy
        self._made: defaultdict[tuple[str, str], list[PastMove]] = defaultdict(list)  # by owner and strategy
        self._left: dict[tuple[str, str, str], float] = {}  # when, by owner, strategy and node
        self._refusals: defaultdict[str, list[float]] = defaultdict(list)  # by budget
        self._forecasts: defaultdict[str, list[bool]] = defaultdict(list)  # by policy, whether each came true
        for move in sorted(past, key=lambda each: each.ended):
            self._learn(move)

    def _learn(self, move: PastMove) -> None:
        if move.came_true is not None:
            self._forecasts[move.policy].append(move.came_true)
        if move.fate is MoveOutcome.BLOCKED:
            if move.budget and self._now - move.ended < BUDGET_MEMORY_S:
                self._refusals[move.budget].append(move.ended)
            return
        if move.fate is MoveOutcome.SETTLED:
            self._in_a_row.pop(move.policy, None)
        else:
            self._in_a_row.setdefault(move.policy, []).append(move)
        for owner in dict.fromkeys((move.owner, move.controller or move.owner)):
            key = (owner, move.strategy)
            if move.fate is not MoveOutcome.REFUSED:
                self._made[key].append(move)
            if move.fate is MoveOutcome.SETTLED:
                self._fruitless.pop(key, None)
                self._left[*key, move.source] = move.ended
            else:
                self._fruitless.setdefault(key, []).append(move)

    def distrust(self, policy: str, least: float) -> Refusal | None:
        """Why a policy makes no more moves whose targets are forecasts: too few came true."""
        known = self._forecasts[policy]
        if len(known) < FEWEST_FORECASTS or sum(known) >= least * len(known):
            return None
        return Refusal(
            "ForecastsMiss",
            f"of {len(known)} replacements that other schedulers placed, {sum(known)} went to the expected"
            f" node or one as good, fewer than {100 * least:.0f}%; such pods stay until the records of misses"
            " have expired",
        )

    def held_back(self, owner: str, strategy: str) -> Refusal | None:
        """Why a strategy leaves the owner's pods alone for now, None if it does not."""
        row = self._fruitless.get((owner, strategy))
        if not row:
            return None
        last, times = row[-1], len(row)
        story = f"{counted(times, 'unsuccessful move')} of {last.name} in a row, the last " + _ENDS[
            last.fate
        ].format(source=last.source)
        if times >= SUSPENDED_AFTER:
            return Refusal(
                "Suspended",
                f"{story}; the strategy leaves it alone until the records of these moves are gone",
            )
        until = last.ended + min(HOLD_BACK_S * 2.0 ** (times - 1), MAX_HOLD_BACK_S)
        if self._now >= until:
            return None
        return Refusal("HeldBack", f"{story}; tried again after {_clock(until)}")

    def made_since(self, owner: str, strategy: str, moment: float) -> int:
        """How many pods of the owner a strategy has moved since then."""
        return sum(each.ended > moment for each in self._made.get((owner, strategy), ()))

    def left_behind(self, strategy: str, born: Mapping[str, float]) -> str:
        """Which node a strategy has emptied in vain within the day, in a sentence; "" for none.

        Args:
            strategy: Its name.
            born: When each present node was created, in seconds since the epoch.
        """
        left = defaultdict[str, list[PastMove]](list)
        for (_, name), moves in self._made.items():
            for move in moves if name == strategy else ():
                left[move.source].append(move)
        for node, moves in sorted(left.items()):
            moment = max(each.ended for each in moves)
            last = [each for each in moves if each.ended > moment - REMOVED_WITHIN_S]
            if any(each.fate is not MoveOutcome.SETTLED for each in last):
                continue  # it was opened again, and not emptied
            age = self._now - moment
            if born.get(node, moment + 1) <= moment and REMOVED_WITHIN_S <= age < LEFT_BEHIND_S:
                return (
                    f"node {node} was emptied at {_clock(moment)} and is still there: nothing removes empty"
                    f" nodes, so none is emptied before {_clock(moment + LEFT_BEHIND_S)}"
                )
        return ""

    def filled(self, strategies: Collection[str], born: Callable[[str], float]) -> dict[str, float]:
        """When one of the strategies has last moved a pod to each node within the day, in seconds since 1970.

        Args:
            strategies: Their names.
            born: When a node was created, likewise; younger than the move, it is another one.
        """
        found: dict[str, float] = {}
        for (_, name), moves in self._made.items():
            for move in moves if name in strategies else ():
                is_recent = move.fate is MoveOutcome.SETTLED and self._now - move.ended < FILLED_S
                if move.target and is_recent and move.ended >= born(move.target):
                    found[move.target] = max(found.get(move.target, 0.0), move.ended)
        return found

    def still_over(self, owner: str, strategy: str, over: frozenset[str]) -> Refusal | None:
        """Why a strategy leaves the owner's pods alone: its latest move has not helped one of its nodes.

        ``over`` are the nodes that are over-used now.
        """
        row = self._made.get((owner, strategy))
        if not row or not (
            node := next((each for each in (row[-1].source, row[-1].target) if each in over), "")
        ):
            return None
        times = self.made_since(owner, strategy, self._now - MAX_HOLD_BACK_S)
        until = row[-1].ended + HOLD_BACK_S * 2.0 ** max(times - 1, 0)
        if self._now >= min(until, row[-1].ended + MAX_HOLD_BACK_S):
            return None
        return Refusal(
            "HeldBack",
            f"node {node} is over-used although a pod of {row[-1].name} was moved; tried again after"
            f" {_clock(until)}",
        )

    def ping_pong(self, owner: str, strategy: str, target: str) -> Refusal | None:
        """Why a balancing strategy must not move a pod of the owner to this node, None if it may."""
        left = self._left.get((owner, strategy, target))
        if left is None or self._now - left >= PING_PONG_S:
            return None
        return Refusal(
            "PingPong",
            f"the strategy moved a pod of the same owner away from node {target} at {_clock(left)},"
            " and does not bring one back within the hour",
        )

    def budget(self, key: str) -> Refusal | None:
        """Why a PodDisruptionBudget is left alone for now, None if it is not."""
        refused = self._refusals.get(key)
        if not refused:
            return None
        until = refused[-1] + min(BUDGET_S * 2.0 ** (len(refused) - 1), MAX_BUDGET_S)
        if self._now >= until:
            return None
        times = "once" if len(refused) == 1 else f"{len(refused)} times"
        return Refusal(
            "BudgetBackoff",
            f"PodDisruptionBudget {key} said no {times} within the hour; asked again after {_clock(until)}",
        )

    def rest(self, policy: str) -> tuple[str, bool]:
        """Why a policy rests ("" if it does not), and whether it may try one move."""
        row = self._in_a_row.get(policy, [])
        if len(row) < REST_AFTER:
            return "", False
        last = row[-1]
        until = last.ended + REST_S
        story = f"the last {len(row)} moves were unsuccessful, the latest one of {last.name}"
        if self._now < until:
            return f"{story}; no pod is moved until {_clock(until)}, then one is tried", False
        return f"{story}; one move is tried", True

    def suspended(self, policy: str) -> list[str]:
        """A sentence for each workload that strategies of a policy leave alone altogether."""
        return [
            f"{strategy} leaves {row[-1].name} alone: its last {len(row)} moves were unsuccessful"
            for (_, strategy), row in sorted(self._fruitless.items())
            if len(row) >= SUSPENDED_AFTER and row[-1].policy == policy
        ]


def _clock(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
