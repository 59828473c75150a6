"""Makes room for pending pods by exact programs for a few nodes at a time (large neighbourhood search).

A strategy that makes room considers one node for one pod. The pods that it leaves pending often fit when pods
of several nodes change places. A program for all nodes is too large, so:

1. For a pending pod, the nodes on which only requests reject it are taken in order, those that lack least
   first, a few at a time, together with nodes where pods from there could go.
2. A program for these nodes, all pods that may leave them and all pending pods of that priority
   (:meth:`plimsoll_optimal.encoding.Setting.around`) decides which pods move where and which get a
   place. A pod that gets none counts as a violation. If no order of the moves is found, the program is solved
   once more for a few steps, each of which fits next to all pods that no earlier step has moved; this rules
   out swaps.
3. The solution becomes bundles, one per pending pod: the moves off its node until it fits, each after the
   moves that make room on its own target. Later bundles depend on earlier ones. Each is judged like any
   strategy's proposal: by limits, budgets and the scheduler's filters, all or nothing.

The search ends when the time is up or no neighbourhood is left. The bound of one neighbourhood holds for its
few nodes only, and is not reported.
Source: Shaw, "Using Constraint Programming and Local Search Methods to Solve Vehicle Routing Problems" (CP
1998), for the idea of a neighbourhood.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import count

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from plimsoll.engine.plugin_calls import calling
from plimsoll.framework import PodInfo, PodTemplate
from plimsoll.framework.descheduling.context import StrategyContext
from plimsoll.framework.descheduling.proposals import Beneficiary, Bundle, Candidate, Verdict
from plimsoll.framework.descheduling.strategy import ServesPending
from plimsoll.planning.fork_schedulers import ForkSchedulers
from plimsoll.planning.moves import RebalancingConfig, replacement_of, replacement_uid
from plimsoll.planning.proven.plan_builder import PlanBuilder
from plimsoll.planning.proven.verdicts import judge
from plimsoll_optimal.encoding import ProblemEncoding
from plimsoll_optimal.milp import solve
from plimsoll_optimal.move_requests import may_be_sent
from plimsoll_optimal.problem import Solution
from plimsoll_optimal.search_time import SearchTime

#: Nodes of a neighbourhood on which room is sought, and the maximum number of nodes that receive their pods.
FOCUS = 16

#: Maximum seconds for one program; seconds that evaluating a neighbourhood adds, and that each node adds.
MOST_S, LOOK_S, NODE_S = 3.0, 0.1, 0.0004

#: Steps in which pods of a neighbourhood change places.
PHASES = 3

#: Maximum number of moves that wait for each other in a row; filter evaluations for one solution.
DEPTH, QUESTIONS = 6, 500


class NeighbourhoodSearch(Struct):
    """Searches one neighbourhood after the other."""

    plan: PlanBuilder
    rebalancing: RebalancingConfig
    strategy: ServesPending
    time: SearchTime
    _closed: bool = False  #: the cycle's total is used up
    _seen: set[tuple[int, frozenset[str], int]] = field(default_factory=set)

    def run(self) -> None:
        """Search all neighbourhoods within the time.

        Raises:
            PluginError: The strategy raised; earlier bookings stand.
        """
        for window in count():
            seen = [self._look(sample, window) for sample in self._kinds()]
            if self._is_over or not any(seen):
                return

    @property
    def _is_over(self) -> bool:
        return self._closed or self.time.is_over

    def _kinds(self) -> list[PodInfo]:
        """One pending pod of each template."""
        kinds: dict[tuple[PodTemplate, int], PodInfo] = {}
        for pod in self.waiting():
            kinds.setdefault((pod.template, pod.priority), pod)
        return list(kinds.values())

    def waiting(self) -> list[PodInfo]:
        """Pods that fit nowhere at present.

        Raises:
            PluginError: The strategy raised.
        """
        with calling(self.strategy.name, "waiting"):
            return self.strategy.waiting(self.plan.context)

    def _look(self, sample: PodInfo, window: int) -> bool:
        """Solve one neighbourhood of pods of a kind until it gains nothing; returns whether there was one."""
        looked = False
        while not self._is_over:
            waiting = [pod for pod in self.waiting() if pod.priority == sample.priority]
            kin = next((pod for pod in waiting if pod.template is sample.template), None)
            focus = _focus(kin, window, self.plan.context) if kin is not None else []
            if not focus:
                break
            looked = True
            # Siblings lack the same on the same nodes, and all of one priority are served together.
            key = (sample.priority, frozenset(focus), len(self.plan.moves))
            if key in self._seen:
                break
            self._seen.add(key)
            if not self._solve([*focus, *_sinks(focus, sample.priority, self.plan)], waiting):
                break
        return looked

    def _solve(self, nodes: Sequence[str], waiting: Sequence[PodInfo]) -> int:
        """Solve one program; returns how many pods get a place."""
        self.time.report(LOOK_S + NODE_S * len(self.plan.context.nodes))
        setting = ProblemEncoding.around(self.rebalancing, self.plan, nodes, waiting)
        for phases in (0, PHASES):
            problem = replace(setting.problem, phases=phases)
            found = solve(problem, max(min(self.time.left, MOST_S), LOOK_S))
            self.time.report(found.seconds)
            served = 0
            unfolding = _Unfolding(setting, self.plan, self.rebalancing, found, self.time)
            for bundle in unfolding.bundles():
                if len(bundle.candidates) > self.strategy.most_moves:
                    continue
                verdict = judge(self.plan, bundle, self.strategy.name)
                served += verdict is Verdict.ACCEPTED
                self._closed = self._closed or verdict is None
            if served or (found.gap == 0 and not found.moves) or self._is_over:
                return served
        return 0


def _focus(pod: PodInfo, window: int, context: StrategyContext) -> list[str]:
    """Nodes on which only requests reject a pod, those that lack least first: one window of them."""
    what_if = context.prospects.what_if(pod)
    if what_if is None:
        return []
    snapshot = context.snapshot
    rows = what_if.helpful()
    rows = rows[np.isin(rows, [context.cluster.rows[name] for name in context.nodes])]
    rows = rows[what_if.by_sums(rows)]
    wanted = snapshot.requests_row(pod.requests)
    rows = rows[(snapshot.allocatable[rows] >= wanted)[:, wanted > 0].all(axis=1)]
    lacking = np.maximum(snapshot.requested[rows] + wanted - snapshot.allocatable[rows], 0)
    shares = lacking[:, wanted > 0] / wanted[wanted > 0]
    order = np.lexsort((context.cluster.name_ranks[rows], shares.sum(axis=1)))[
        window * FOCUS : (window + 1) * FOCUS
    ]
    return [snapshot.node(row).name for row in rows[order].tolist()]


def _sinks(focus: Sequence[str], highest: int, plan: PlanBuilder) -> list[str]:
    """Nodes that other pods could move to, first those that are the only ones for many of them.

    Next come nodes that other pods could move to after further moves, by how many lack little there.
    """
    context = plan.context
    votes: defaultdict[str, float] = defaultdict(float)
    samples = {
        pod.template: pod
        for name in focus
        for pod in context.pods(name)
        if pod.priority <= highest and may_be_sent(plan, pod, name, "")
    }
    for pod in samples.values():
        rows = context.prospects.feasible(pod)
        if rows is not None and len(rows):
            for row in rows.tolist():
                votes[context.cluster.nodes[row].name] += 1 / len(rows)
        for name in _focus(replacement_of(pod, context.cluster), 0, context):  # after others have left
            votes[name] += 1 / (FOCUS * len(samples) * len(context.nodes))
    considered = set(context.nodes) - set(focus)
    ranked = sorted(votes, key=lambda name: (-votes[name], name))
    return [name for name in ranked if name in considered][:FOCUS]


class _Unfolding:
    """Turns a solution into bundles, one per pending pod, each feasible after the earlier ones."""

    def __init__(
        self,
        setting: ProblemEncoding,
        plan: PlanBuilder,
        rebalancing: RebalancingConfig,
        found: Solution,
        time: SearchTime,
    ) -> None:
        self._setting, self._time = setting, time
        self._fork = plan.context.cluster.fork()
        self._schedulers = ForkSchedulers(rebalancing.profiles, self._fork)
        leaving, self._open = setting.unfolded(found)
        self._leaving: defaultdict[str, list[PodInfo]] = defaultdict(list)
        for pods in leaving.values():
            for pod in pods:
                self._leaving[setting.source_of(pod)].append(pod)
        self._made: list[tuple[PodInfo, str, str]] = []
        self._questions = QUESTIONS

    def bundles(self) -> Iterator[Bundle]:
        """The bundles, largest pods first; any order would do, as each takes only the moves that it needs."""
        for pod in self._leaving.pop("", []):
            for node in [name for name, number in self._open[pod.template].items() if number]:
                if self._is_over:
                    return
                self._made.clear()
                if not self._clear(node, pod, frozenset({node})):
                    self._undo(0)
                    continue
                self._open[pod.template][node] -= 1
                self._fork.place(pod, node)
                if self._made:
                    reason = f"makes room for pending pod {pod.key}"
                    moves = tuple(Candidate(each, source, reason, to) for each, source, to in self._made)
                    yield Bundle(moves, Beneficiary(pod, node))
                break

    def _clear(self, node: str, pod: PodInfo, closed: frozenset[str]) -> bool:
        """Make moves off a node until a pod fits there; returns whether it fits."""
        for leaving in list(self._leaving[node]):
            if self._fits(pod, node):
                return True
            if self._is_over:
                return False
            if leaving in self._leaving[node]:  # not moved on the way
                self._send(leaving, node, closed)
        return self._fits(pod, node)

    def _send(self, pod: PodInfo, source: str, closed: frozenset[str]) -> bool:
        """Make a move, after the moves that make room on its target."""
        targets = [name for name, number in self._open[pod.template].items() if number and name not in closed]
        fresh = replacement_of(pod, self._fork)
        self._fork.displace(pod.uid)
        mark = len(self._made)
        for deep in (False, True)[: 1 + (len(closed) <= DEPTH)]:
            for target in targets:
                if self._is_over:
                    break
                if self._clear(target, fresh, closed | {target}) if deep else self._fits(fresh, target):
                    self._fork.place(replacement_of(pod, self._fork, target), target)
                    self._leaving[source].remove(pod)
                    self._open[pod.template][target] -= 1
                    self._made.append((pod, source, target))
                    return True
                self._undo(mark)
        self._fork.place(pod, source)
        return False

    @property
    def _is_over(self) -> bool:
        return not self._questions or self._time.is_over

    def _undo(self, mark: int) -> None:
        """Undo all moves made since ``mark``."""
        for pod, source, target in reversed(self._made[mark:]):
            self._fork.displace(replacement_uid(pod))
            self._fork.place(pod, source)
            self._leaving[source].append(pod)
            self._open[pod.template][target] += 1
        del self._made[mark:]

    def _fits(self, pod: PodInfo, node: str) -> bool:
        if self._is_over:  # no order was found in time; every caller returns
            return False
        self._questions -= 1
        scheduler = self._schedulers.serving(pod)
        return scheduler is not None and bool(np.isin(self._fork.rows[node], scheduler.filtered(pod).rows))
