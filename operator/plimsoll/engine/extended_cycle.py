"""A scheduling attempt in which HTTP extenders have a say: a generator that yields what to ask.

::

    filters ─▶ ask: filter ─▶ scores + ask: prioritize ─▶ choose          (or, where nothing is feasible)
                                                       └▶ PostFilter ─▶ ask: preempt ─▶ nominate

Each yield is a tuple of asks that may be carried out at the same time; what is sent back is the tuple of
their answers. The cluster moves on while an extender thinks, so nothing from before a yield is trusted
behind it: the filters are asked anew, and only a node that passed them *now* and the extenders *then* is
chosen. The last step, from the last answer to the decision, touches nothing but memory.

Source: kube-scheduler v1.36, ``schedule_one.go`` (findNodesThatPassExtenders, prioritizeNodes) and
``framework/preemption`` (callExtenders). Differs: upstream asks its extenders one pod after another with
the whole scheduler waiting; here others are served meanwhile, hence the second look (docs/adr/0010).
"""

import heapq
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from plimsoll.engine.cycle import Decision, Filtered, Outcome, Scheduler
from plimsoll.engine.extenders.extender import (
    Ask,
    Extender,
    Failure,
    FilterAsk,
    NodeDocuments,
    PreemptAsk,
    PrioritizeAsk,
)
from plimsoll.framework import Code, Nomination, PluginError, PodInfo, Status, unresolvable, unschedulable
from plimsoll.framework.extension_points import Candidate
from plimsoll.model.columns.columns import RowArray
from plimsoll.model.kinds.extender_wire import FilterAnswer
from plimsoll.toolkit.scheduling.victims import Found

#: An attempt begins again when its nodes were taken while it asked; so often, then the pod backs off.
ROUNDS = 3

#: Candidates that an extender is shown at most, the best ones: as many as upstream looks for at least.
CANDIDATES = 100

Steps: TypeAlias = Generator[tuple[Ask, ...], tuple[Any, ...], Decision]


def schedule_extended(
    scheduler: Scheduler, pod: PodInfo, extenders: Sequence[Extender], documents: NodeDocuments
) -> Steps:
    """Try to place a pod; never raises for what a plugin does.

    Args:
        scheduler: Of the pod's profile.
        pod: The pod.
        extenders: Those that it concerns, the ignorable ones last.
        documents: Nodes as they are sent.
    """
    try:
        return (yield from _Attempt(scheduler, pod, extenders, documents).run())
    except PluginError as exc:
        return scheduler.broken(pod, exc)


class _Attempt:
    """One pod's attempt."""

    def __init__(
        self, scheduler: Scheduler, pod: PodInfo, extenders: Sequence[Extender], documents: NodeDocuments
    ) -> None:
        self._scheduler = scheduler
        self._cluster = scheduler.cluster
        self._pod = pod
        self._extenders = extenders
        self._documents = documents

    def run(self) -> Steps:
        """Rounds, until one ends in a decision."""
        if not len(self._cluster):
            return self._scheduler.schedule(self._pod)
        for _ in range(ROUNDS):
            decision = yield from self._round()
            if decision is not None:
                return decision
        return Decision(
            self._pod,
            Outcome.ERROR,
            message=f"the nodes were taken by others {ROUNDS} times while extenders were asked; trying again",
        )

    def _round(self) -> Generator[tuple[Ask, ...], tuple[Any, ...], Decision | None]:
        """One decision, or None when the cluster has moved too far for one."""
        decision, is_nominated = yield from self._nominated()
        if is_nominated:
            return decision
        found = self._scheduler.filtered(self._pod)
        if not len(found.rows):
            return (yield from self._rejected(found, None))
        asked = self._names(found.rows)
        answer = yield from self._filter(asked)
        if isinstance(answer, Failure):
            return Decision(self._pod, Outcome.ERROR, message=answer.message)
        found, rows = self._left(answer)
        if not len(rows):
            if not set(self._names(found.rows)) <= set(asked):
                return None  # there is room where nobody was asked
            return (yield from self._rejected(found, answer))
        points: Mapping[str, int] = {}
        if len(rows) > 1:
            points = yield from self._prioritize(self._names(rows))
            found, rows = self._left(answer)
        return self._chosen(found, rows, points) if len(rows) else None

    # -- choosing ------------------------------------------------------------------------------------

    def _nominated(self) -> Generator[tuple[Ask, ...], tuple[Any, ...], tuple[Decision | None, bool]]:
        """The nominated node is tried alone; whether that settled it."""
        scheduler, pod = self._scheduler, self._pod
        row = scheduler.nominated_row(pod)
        if row is None or not scheduler.holds(scheduler.filtered(pod), pod, row):
            return None, False
        name = self._cluster.nodes[row].name
        answer = yield from self._filter((name,))
        if isinstance(answer, Failure) or name not in answer.passed:
            return None, False
        now = self._cluster.rows.get(name)
        if now is None or not scheduler.holds(scheduler.filtered(pod), pod, now):
            return None, True
        return Decision(pod, Outcome.SCHEDULED, name, feasible=1, ties=1), True

    def _filter(
        self, names: Sequence[str]
    ) -> Generator[tuple[Ask, ...], tuple[Any, ...], FilterAnswer | Failure]:
        """Ask one extender after another; each is given what those before it left."""
        passed = list(names)
        failed: dict[str, str] = {}
        unresolvable_: dict[str, str] = {}
        for extender in self._extenders:
            nodes = tuple(
                self._cluster.nodes[self._cluster.rows[name]] for name in passed if name in self._cluster.rows
            )
            if not nodes:
                break
            if not extender.filter_verb:
                continue
            (answer,) = yield (FilterAsk(extender, nodes, self._documents),)
            if isinstance(answer, Failure):
                if extender.ignorable:
                    continue
                return answer
            failed.update(answer.failed)
            unresolvable_.update(answer.unresolvable)
            passed = [name for name in passed if name in answer.passed]
        return FilterAnswer(frozenset(passed), failed, unresolvable_)

    def _prioritize(
        self, names: Sequence[str]
    ) -> Generator[tuple[Ask, ...], tuple[Any, ...], Mapping[str, int]]:
        """Ask all extenders at once; who fails gives no points."""
        nodes = tuple(self._cluster.nodes[self._cluster.rows[name]] for name in names)
        asks = tuple(
            PrioritizeAsk(each, nodes, self._documents) for each in self._extenders if each.prioritize_verb
        )
        points: dict[str, int] = {}
        if asks:
            for answer in (yield asks):
                if not isinstance(answer, Failure):
                    for name, score in answer.items():
                        points[name] = points.get(name, 0) + score
        return points

    def _left(self, answer: FilterAnswer) -> tuple[Filtered, RowArray]:
        """What the filters say now, and which of their nodes the extenders passed."""
        found = self._scheduler.filtered(self._pod)
        nodes = self._cluster.nodes
        passes = [int(row) for row in found.rows if nodes[row].name in answer.passed]
        return found, np.array(passes, dtype=np.intp)

    def _chosen(self, found: Filtered, rows: RowArray, points: Mapping[str, int]) -> Decision:
        pod, nodes = self._pod, self._cluster.nodes
        if len(rows) == 1:
            return Decision(pod, Outcome.SCHEDULED, nodes[int(rows[0])].name, feasible=1, ties=1)
        own = found.lane.totals(pod, rows)
        # Python's integers do not overflow, whatever an extender and its weight come to.
        totals = [int(total) + points.get(nodes[row].name, 0) for row, total in zip(rows, own, strict=True)]
        highest = max(totals)
        best = rows[[position for position, total in enumerate(totals) if total == highest]]
        return Decision(
            pod,
            Outcome.SCHEDULED,
            nodes[self._scheduler.pick(best)].name,
            total=highest,
            feasible=len(rows),
            ties=len(best),
        )

    def _names(self, rows: RowArray) -> list[str]:
        return [self._cluster.nodes[row].name for row in rows]

    # -- making room -----------------------------------------------------------------------------------

    def _rejected(
        self, found: Filtered, answer: FilterAnswer | None
    ) -> Generator[tuple[Ask, ...], tuple[Any, ...], Decision | None]:
        """No node is left: say why; where preemption found victims, extenders may spare some."""
        decision = self._scheduler.reject(
            self._pod, found, None if answer is None else self._refused(found, answer)
        )
        nomination = decision.nomination
        asked = [each for each in self._extenders if each.preempt_verb]
        if nomination is None or not nomination.status.is_success or nomination.search is None or not asked:
            return decision
        candidates: Mapping[str, Candidate] = dict(self._best(nomination.search.candidates()))
        for extender in asked:
            if not candidates:
                break
            (left,) = yield (PreemptAsk(extender, candidates, self._removable(candidates)),)
            if isinstance(left, Failure):
                if extender.ignorable:
                    continue
                return _without_room(
                    decision,
                    f'running PostFilter plugin "DefaultPreemption": preemption: {left.message}',
                    None,
                )
            candidates = left
        again = self._scheduler.filtered(self._pod)
        if set(self._names(again.rows)) - (set() if answer is None else set(self._names(found.rows))):
            return None  # there is room now: nobody has to go
        return self._nominating(decision, nomination, candidates)

    def _best(self, candidates: Mapping[str, Candidate]) -> list[tuple[str, Candidate]]:
        """The candidates to show, best first."""
        costs = {
            node: (Found(self._cluster.rows[node], each.victims, each.violations).cost(), node)
            for node, each in candidates.items()
            if each.victims
        }
        return [
            (node, candidates[node]) for node in heapq.nsmallest(CANDIDATES, costs, key=costs.__getitem__)
        ]

    def _refused(self, found: Filtered, answer: FilterAnswer) -> dict[int, Status]:
        """Statuses by row of the nodes that pass the filters and that an extender gave a reason for."""
        statuses: dict[int, Status] = {}
        for row in found.rows.tolist():
            name = self._cluster.nodes[row].name
            if name in answer.unresolvable:
                statuses[row] = unresolvable(answer.unresolvable[name])
            elif name in answer.failed:
                statuses[row] = unschedulable(answer.failed[name])
        return statuses

    def _removable(self, candidates: Mapping[str, Candidate]) -> dict[str, dict[str, PodInfo]]:
        """By candidate, the pods there that the pod may drive away."""
        return {
            node: {
                other.uid: other
                for other in (self._cluster.pods_on(row) if row is not None else ())
                if other.priority < self._pod.priority
            }
            for node, row in ((node, self._cluster.rows.get(node)) for node in candidates)
        }

    def _nominating(
        self, decision: Decision, nomination: Nomination, candidates: Mapping[str, Candidate]
    ) -> Decision:
        """The best candidate whose victims are all still there."""
        present = self._removable(candidates)
        found = [
            Found(self._cluster.rows[node], each.victims, each.violations)
            for node, each in candidates.items()
            if all(victim.uid in present[node] for victim in each.victims)
        ]
        if not found:
            return _without_room(decision, "preemption: no candidate node for preemption", None)
        best = min(found, key=lambda each: (each.cost(), each.row))
        node = self._cluster.nodes[best.row].name
        outranked = tuple(
            other
            for other in self._scheduler.nominations.by_node.get(node, {}).values()
            if other.priority < self._pod.priority
        )
        return replace(
            decision, nomination=replace(nomination, node=node, victims=best.victims, outranked=outranked)
        )


def _without_room(decision: Decision, why: str, node: str | None) -> Decision:
    """The pod stays unschedulable, nobody goes, and the message says why."""
    assert decision.diagnosis is not None
    diagnosis = replace(decision.diagnosis, post_filter_message=why)
    nomination = Nomination(Status(Code.UNSCHEDULABLE, (why,)), node=node)
    return replace(decision, diagnosis=diagnosis, message=str(diagnosis), nomination=nomination)
