"""Judges moves by the complaints of strategies: a move must resolve its own, and cause no new one.

The strategies of the policy, and those of other live policies for the same pods, report complaints around a
move before it and after it. A move is refused

* as ``MendsNothing`` when its own strategy's complaints do not decrease;
* as ``NewComplaint`` when a complaint of any strategy increases, or a new one appears, that is at least as
  severe as what its own strategy's complaints decrease by;
* as ``WouldMoveAgain`` when another strategy would still empty the target, unless the pod must leave anyway.

Rules of the scheduler go before preferences, and both before balance
(:class:`~plimsoll.framework.descheduling.complaints.Gravity`): a pod leaves a node that is forbidden to it
though another node is then above its target. A ``strict`` judgement allows no complaint to increase; a
planner asks it first, so that a node where nothing gets worse is preferred.

So the complaints of one gravity decrease with each move, those that are more severe do not increase, and
runs converge. A strategy that does not report complaints
(:class:`~plimsoll.framework.descheduling.complaints.Complaining`) runs again instead: the pods that it would
propose count as its complaints. Strategies that a fresh pod satisfies
(:class:`~plimsoll.framework.descheduling.strategy.Renewing`) have no complaints about places.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from plimsoll.engine.plugin_calls import calling
from plimsoll.framework import PluginError, PodInfo
from plimsoll.framework.descheduling.complaints import (
    Complaining,
    ComplainsOfCrowding,
    Complaint,
    Complaints,
    EmptiesByUse,
    Gravity,
    Vicinity,
)
from plimsoll.framework.descheduling.context import StrategyContext
from plimsoll.framework.descheduling.pod_indexes import UnplacedPods
from plimsoll.framework.descheduling.proposals import Bundle, Proposal, Refusal, Verdict
from plimsoll.framework.descheduling.strategy import ServesPending, Strategy, wants_restart
from plimsoll.model.columns.cluster import Cluster
from plimsoll.planning.aftermath import ForkAttempt, settled, shifted
from plimsoll.planning.scope import PolicyScope
from plimsoll.planning.strategy_run import run_strategy

#: The machine reasons of these refusals.
MENDS_NOTHING, NEW_COMPLAINT, WOULD_MOVE_AGAIN = "MendsNothing", "NewComplaint", "WouldMoveAgain"

#: The gravities in the sentences of refusals.
SPOKEN = {Gravity.RULE: "a rule", Gravity.PREFERENCE: "a preference", Gravity.BALANCE: "balance"}

#: Differences of amounts below this are rounding errors.
TOLERANCE = 1e-6


class ProposedMove(Struct, frozen=True):
    """The move of one pod from a node to another, or back to its own."""

    pod: PodInfo
    source: str
    target: str


class ComplaintWatcher(Struct, frozen=True, eq=False):
    """A strategy with its view of the cluster.

    Attributes:
        context: The strategy's view of the plan's fork.
        policy: Name of the strategy's policy, "" for the policy that is being planned.
    """

    strategy: Strategy
    context: StrategyContext
    policy: str = ""

    def is_about(self, near: Vicinity) -> bool:
        """Whether one of the pods is in the scope of the strategy's policy; always for the planned policy."""
        if not self.policy:
            return True
        scopes = [each for each in self.context.evictors if isinstance(each, PolicyScope)]
        return any(all(scope.filter(pod, self.context) is None for scope in scopes) for pod in near.pods)

    def __str__(self) -> str:
        """Its name in sentences."""
        return f"{self.strategy.name} of policy {self.policy}" if self.policy else self.strategy.name


class ComplaintComparison:
    """Compares complaints before and after moves on the fork of a plan.

    Args:
        fork: The cluster with all moves so far; restored after each comparison.
        others: Strategies of other live policies, by policy, with their views of the same fork.
    """

    def __init__(
        self,
        fork: Cluster,
        context: StrategyContext,
        strategies: Iterable[Strategy],
        others: Iterable[ComplaintWatcher] = (),
    ) -> None:
        self._fork = fork
        self._context = context
        own = [ComplaintWatcher(each, context) for each in strategies]
        self._watchers = [each for each in (*own, *others) if _judges_places(each.strategy)]
        self._own = {each.strategy.name: each for each in self._watchers if not each.policy}
        # Needed for every candidate: what a strategy can report is determined once.
        self._complaining = {each for each in self._watchers if isinstance(each.strategy, Complaining)}
        self._of_crowding = {
            each
            for each in self._watchers
            if isinstance(each.strategy, ComplainsOfCrowding) and each.strategy.complains_of_crowding
        }
        self._emptying = [
            (each, each.strategy) for each in self._watchers if isinstance(each.strategy, EmptiesByUse)
        ]
        self._failed: set[ComplaintWatcher] = set()
        self._refused: dict[tuple[Hashable, str], Refusal] = {}

    def forget(self) -> None:
        """Drop cached complaints after a move was made or undone."""
        self._refused.clear()

    def known_refusal(self, pod: PodInfo, target: str) -> Refusal | None:
        """The complaint about another pod with the same requests on that node, from any source."""
        return self._refused.get((_requests_of(pod), target))

    def only_reported(self) -> None:
        """Leave out strategies that would have to run again; there is no time for it before an eviction."""
        self._watchers = [each for each in self._watchers if each in self._complaining]

    def decides(self, strategy: str) -> bool:
        """Whether the strategy's complaints justify its moves, rather than the scheduler's score."""
        return self._own.get(strategy) in self._complaining

    def refusal(
        self, strategy: str, moves: Sequence[ProposedMove], *, mends: bool = True, strict: bool = True
    ) -> Refusal | None:
        """Why moves must not be made; they are made and undone here.

        With ``mends`` they must decrease the strategy's complaints, unlike moves that renew or serve pods.
        With ``strict`` less severe complaints must not increase either, and no target may be a node that
        another strategy would empty.

        Raises:
            PluginError: The strategy that proposed the moves raised.
        """
        nodes = frozenset(name for move in moves for name in (move.source, move.target))
        before = self._reported(Vicinity(tuple(move.pod for move in moves), nodes), strategy)
        after, emptied = self._after(moves, nodes, strategy, avoids=strict)
        refusal, watcher = self._compared(strategy, before, after, mends=mends, strict=strict)
        if refusal and watcher in self._of_crowding and not watcher.policy and len(moves) == 1:
            self._refused[_requests_of(moves[0].pod), moves[0].target] = refusal
        if refusal is None and emptied:
            name, other = min((move.target, emptied[move.target]) for move in moves if move.target in emptied)
            message = f"{other} would move it on: it empties node {name} for its little use"
            refusal = Refusal(WOULD_MOVE_AGAIN, message)
        return refusal

    def _after(
        self, moves: Sequence[ProposedMove], nodes: frozenset[str], strategy: str, *, avoids: bool
    ) -> tuple[dict[ComplaintWatcher, Complaints], dict[str, str]]:
        """Complaints after the moves, and the targets that other strategies would empty, with their names."""
        contexts = {id(each.context): each.context for each in self._watchers}
        measured = [(context, context.measurements) for context in contexts.values()]
        replacements = [settled(move.pod, self._fork, move.target, self._context.now) for move in moves]
        attempt = ForkAttempt(self._fork)
        try:
            for move, replacement in zip(moves, replacements, strict=True):
                attempt.move(move.pod, move.target, replacement)
            for context, known in measured:
                context.measurements = shifted(
                    known, [(move.pod.key, move.source, move.target) for move in moves]
                )
            near = Vicinity(tuple(replacements), nodes)
            found = self._reported(near, strategy)
            return found, self._emptied(moves, near, strategy) if avoids else {}
        finally:
            attempt.undo()
            for context, known in measured:
                context.measurements = known

    def _emptied(self, moves: Sequence[ProposedMove], near: Vicinity, proposer: str) -> dict[str, str]:
        """Targets that another strategy would empty, with its name."""
        targets = {move.target for move in moves if move.target != move.source}
        found: dict[str, str] = {}
        for watcher, emptying in self._emptying:
            is_own = not watcher.policy and watcher.strategy.name == proposer
            if is_own or watcher in self._failed or not watcher.is_about(near):
                continue
            try:
                with calling(watcher.strategy.name, "to_be_emptied"):
                    names = emptying.to_be_emptied(watcher.context, near)
            except PluginError:
                self._failed.add(watcher)  # as in _reported
                continue
            found |= dict.fromkeys(names & targets, str(watcher))
        return found

    def _reported(self, near: Vicinity, proposer: str) -> dict[ComplaintWatcher, Complaints]:
        found: dict[ComplaintWatcher, Complaints] = {}
        for watcher in self._watchers:
            if watcher in self._failed or not watcher.is_about(near):
                continue
            try:
                found[watcher] = _complaints(watcher, near)
            except PluginError:
                if not watcher.policy and watcher.strategy.name == proposer:
                    raise
                self._failed.add(watcher)  # it cannot judge this cluster; its own run reports why
        return found

    def _compared(
        self,
        strategy: str,
        before: dict[ComplaintWatcher, Complaints],
        after: dict[ComplaintWatcher, Complaints],
        *,
        mends: bool,
        strict: bool,
    ) -> tuple[Refusal | None, ComplaintWatcher | None]:
        """The refusal, and the strategy that would have a new complaint, if that is why."""
        own = self._own.get(strategy)
        must_mend = mends and own is not None and own in self._complaining
        had = before.get(own, {}) if own is not None else {}
        has = after.get(own, {}) if own is not None else {}
        mended = _mended(had, has) if must_mend else None
        least = Gravity.BALANCE if strict or mended is None else mended
        for watcher, found in after.items():
            known = before.get(watcher, {})
            for complaint, amount in found.items():
                if complaint.gravity >= least and amount > known.get(complaint, 0.0) + TOLERANCE:
                    more = "more than before" if complaint in known else "and does not complain of it now"
                    message = f"{watcher} would complain that {complaint.sentence}, {more}"
                    return Refusal(NEW_COMPLAINT, message + _priority(complaint, mended)), watcher
        if not must_mend or mended is not None:
            return None, None
        if not had:
            return Refusal(MENDS_NOTHING, f"{strategy} has nothing to complain of there"), None
        worst = max(had, key=lambda complaint: (had[complaint], complaint.sentence))
        return Refusal(MENDS_NOTHING, f"{strategy} would still complain that {worst.sentence}"), None


def _mended(had: Complaints, has: Complaints) -> Gravity | None:
    """The highest gravity whose complaints decrease."""
    for gravity in sorted(Gravity, reverse=True):
        less, more = (
            sum(amount for complaint, amount in some.items() if complaint.gravity is gravity)
            for some in (has, had)
        )
        if less < more - TOLERANCE:
            return gravity
    return None


def _priority(complaint: Complaint, mended: Gravity | None) -> str:
    """Why a complaint outweighs what a move mends."""
    if mended is None or complaint.gravity <= mended:
        return ""
    return f"; {SPOKEN[complaint.gravity]} goes before {SPOKEN[mended]}"


def _requests_of(pod: PodInfo) -> Hashable:
    return pod.template.memo("requests", lambda: frozenset(pod.template.requests.items()))


def _judges_places(strategy: Strategy) -> bool:
    """Whether the strategy judges the places of pods."""
    if isinstance(strategy, Complaining):
        return True
    renews = wants_restart(strategy)
    return not renews and not isinstance(strategy, ServesPending)


def complaints_of(
    name: str, strategy: Complaining, context: StrategyContext, near: Vicinity | None = None
) -> Complaints:
    """What a strategy complains of; a plain sentence becomes a complaint of balance.

    Raises:
        PluginError: The strategy raised.
    """
    with calling(name, "complaints"):
        found: Mapping[Any, float] = strategy.complaints(context, near)
    return {each if isinstance(each, Complaint) else Complaint(each): found[each] for each in found}


def _complaints(watcher: ComplaintWatcher, near: Vicinity) -> Complaints:
    strategy, context = watcher.strategy, watcher.context
    return (
        complaints_of(strategy.name, strategy, context, near)
        if isinstance(strategy, Complaining)
        else _proposed(strategy, context, near)
    )


def _proposed(strategy: Strategy, context: StrategyContext, near: Vicinity) -> Complaints:
    """The pods that a strategy would propose if everything were accepted, on a copy of the cluster."""
    fork = context.cluster.fork()
    view = replace(
        context,
        cluster=fork,
        unplaced=UnplacedPods(context.unplaced),
        protected=[],
        classes=[],
        remarks=[],
        kept={},
    )
    concerned = {pod.key for pod in near.pods}
    found: dict[Complaint, float] = {}

    def judge(proposal: Proposal) -> Verdict:
        for each in proposal.candidates if isinstance(proposal, Bundle) else (proposal,):
            if not each.pod.pod.is_terminal and each.pod.key in concerned:
                found[Complaint(f"pod {each.pod.key} had better run elsewhere")] = 1.0
            fork.displace(each.pod.uid)
            view.unplaced.discard(each.pod.uid)
        return Verdict.ACCEPTED

    run_strategy(strategy, view, judge)
    return found
