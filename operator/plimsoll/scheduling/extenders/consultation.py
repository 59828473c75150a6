"""Consults the extenders of one attempt: yields the requests, and folds the responses.

:mod:`plimsoll.scheduling.extenders.steps` decides what a response is worth after the cluster has changed.

Source: kube-scheduler v1.36, ``schedule_one.go`` (findNodesThatPassExtenders, prioritizeNodes) and
``framework/preemption`` (callExtenders).
"""

import heapq
from collections.abc import Generator, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from plimsoll.engine.decision import Decision
from plimsoll.engine.extender import Extender
from plimsoll.framework import Code, Nomination, PodInfo, Status, unresolvable, unschedulable
from plimsoll.framework.extension_points import PreemptionCandidate
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.columns.columns import RowArray
from plimsoll.model.gang_members import GangMembers
from plimsoll.scheduling.extenders.asks import (
    Ask,
    Failure,
    NodeDocuments,
    filter_ask,
    preempt_ask,
    prioritize_ask,
)
from plimsoll.scheduling.extenders.wire import FilterAnswer
from plimsoll.toolkit.scheduling.victims import VictimsFound

#: Maximum number of candidates in a request, the best ones; upstream searches at least as many.
CANDIDATES = 100

Asks: TypeAlias = tuple[Ask, ...]
Answers: TypeAlias = tuple[Any, ...]


class Consultation(Struct, frozen=True):
    """The extenders that are interested in one pod, in the order of the profile, the ignorable ones last."""

    cluster: Cluster
    extenders: Sequence[Extender]
    documents: NodeDocuments

    def filter(self, names: Sequence[str]) -> Generator[Asks, Answers, FilterAnswer | Failure]:
        """Call the extenders in turn; each receives the nodes that passed those before it."""
        passed = list(names)
        failed: dict[str, str] = {}
        unresolvable_: dict[str, str] = {}
        rows, nodes = self.cluster.rows, self.cluster.nodes
        for extender in self.extenders:
            shown = tuple(nodes[rows[name]] for name in passed if name in rows)
            if not shown:
                break
            if not extender.filter_verb:
                continue
            (answer,) = yield (filter_ask(extender, shown, self.documents),)
            if isinstance(answer, Failure):
                if extender.ignorable:
                    continue
                return answer
            failed.update(answer.failed)
            unresolvable_.update(answer.unresolvable)
            passed = [name for name in passed if name in answer.passed]
        return FilterAnswer(frozenset(passed), failed, unresolvable_)

    def prioritize(self, names: Sequence[str]) -> Generator[Asks, Answers, Mapping[str, int]]:
        """Call all extenders simultaneously; a failing one gives no points."""
        nodes = tuple(self.cluster.nodes[self.cluster.rows[name]] for name in names)
        asks = tuple(
            prioritize_ask(each, nodes, self.documents) for each in self.extenders if each.prioritize_verb
        )
        points: dict[str, int] = {}
        for answer in (yield asks) if asks else ():
            if not isinstance(answer, Failure):
                for name, score in answer.items():
                    points[name] = points.get(name, 0) + score
        return points

    def refused(self, rows: RowArray, answer: FilterAnswer) -> dict[int, Status]:
        """Statuses by row of the feasible nodes that extenders rejected."""
        statuses: dict[int, Status] = {}
        for row in rows.tolist():
            name = self.cluster.nodes[row].name
            if name in answer.unresolvable:
                statuses[row] = unresolvable(answer.unresolvable[name])
            elif name in answer.failed:
                statuses[row] = unschedulable(answer.failed[name])
        return statuses

    def preempts(self, nomination: Nomination) -> bool:
        """Whether an extender supports preemption for the candidates that PostFilter found."""
        asked = any(each.preempt_verb for each in self.extenders)
        return asked and nomination.status.is_success and nomination.search is not None

    def preempt(
        self, pod: PodInfo, nomination: Nomination
    ) -> Generator[Asks, Answers, Mapping[str, PreemptionCandidate] | Failure]:
        """Call the extenders in turn for the remaining candidates; an ignorable failure changes none."""
        assert nomination.search is not None
        candidates: Mapping[str, PreemptionCandidate] = dict(self._best(pod, nomination.search.candidates()))
        for extender in self.extenders:
            if not extender.preempt_verb:
                continue
            if not candidates:
                break
            (left,) = yield (preempt_ask(extender, candidates, self._removable(pod, candidates)),)
            if not isinstance(left, Failure):
                candidates = left
            elif not extender.ignorable:
                return left
        return candidates

    def nominated(
        self,
        decision: Decision,
        answer: Mapping[str, PreemptionCandidate] | Failure,
        nominations: Mapping[str, Mapping[str, PodInfo]],
    ) -> Decision:
        """The decision with the best remaining candidate whose victims all still exist."""
        pod, nomination = decision.pod, decision.nomination
        assert nomination is not None
        if isinstance(answer, Failure):
            why = f'running PostFilter plugin "{nomination.plugin}": preemption: {answer.message}'
            return _without_room(decision, why)
        present = self._removable(pod, answer)
        found = [
            VictimsFound(self.cluster.rows[node], each.victims, each.violations)
            for node, each in answer.items()
            if self._may_go(each.victims, present[node])
        ]
        if not found:
            return _without_room(decision, "preemption: no candidate node for preemption")
        best = min(found, key=lambda each: (each.cost(), each.row))
        node = self.cluster.nodes[best.row].name
        outranked = tuple(
            other for other in nominations.get(node, {}).values() if other.priority < pod.priority
        )
        nomination = replace(nomination, node=node, victims=best.victims, outranked=outranked)
        return replace(decision, nomination=nomination)

    def _best(
        self, pod: PodInfo, candidates: Mapping[str, PreemptionCandidate]
    ) -> list[tuple[str, PreemptionCandidate]]:
        """The candidates to send, best first: the protocol knows only victims on the node itself."""
        here = self._removable(pod, candidates)
        costs = {
            node: (VictimsFound(self.cluster.rows[node], each.victims, each.violations).cost(), node)
            for node, each in candidates.items()
            if each.victims and self._may_go(each.victims, here[node])
        }
        return [
            (node, candidates[node]) for node in heapq.nsmallest(CANDIDATES, costs, key=costs.__getitem__)
        ]

    def _may_go(self, victims: Sequence[PodInfo], here: Mapping[str, PodInfo]) -> bool:
        """Whether the victims are all on the node, and leave no members of their groups behind."""
        members = self.cluster.index(GangMembers)
        return all(each.uid in here for each in victims) and not (
            len(members) and members.breaking(victims, self.cluster.pods.get, self.cluster.objects)
        )

    def _removable(
        self, pod: PodInfo, candidates: Mapping[str, PreemptionCandidate]
    ) -> dict[str, dict[str, PodInfo]]:
        """The pods of lower priority on each candidate node."""
        return {
            node: {
                other.uid: other
                for other in (self.cluster.pods_on(row) if row is not None else ())
                if other.priority < pod.priority
            }
            for node, row in ((node, self.cluster.rows.get(node)) for node in candidates)
        }


def _without_room(decision: Decision, why: str) -> Decision:
    """The decision that the pod is unschedulable without victims; the message has the cause."""
    assert decision.diagnosis is not None
    diagnosis = replace(decision.diagnosis, post_filter_message=why)
    nomination = Nomination(Status(Code.UNSCHEDULABLE, (why,)), node=None)
    return replace(decision, diagnosis=diagnosis, message=str(diagnosis), nomination=nomination)
