"""FinalStatePromise: once nothing goes wrong any more, no pod is lost and a converged cluster stays still."""

from __future__ import annotations

import math
from collections.abc import Iterator

from promises.commits import Commit, Obj
from promises.placeable import Places
from promises.pods import controller_of, is_leaving, is_over, is_ready, node_of
from promises.policies import is_accepted, rebalancing_of
from promises.view import POLICIES, View

#: Collections that a converged cluster may still see writes of: what is counted and noted, not done.
REPORTS = frozenset((POLICIES, "events", "leases.coordination.k8s.io"))


class FinalStatePromise:
    """Judges what a run leaves.

    Attributes:
        latest: The time of the operator's last write that is no lease and no report.
    """

    def __init__(self, view: View) -> None:
        self._view = view
        self.latest = 0.0
        self._latest_write = ""

    def judge(self, commit: Commit) -> None:
        """A commit of any collection."""
        author = commit.author
        if author.name and commit.collection not in REPORTS:
            self.latest, self._latest_write = commit.at, f"{author.name} {author.method} {author.path}"

    def unfinished(self, scheduler: str, still_s: float, at: float) -> Iterator[str]:
        """What is not placed, whole or still."""
        yield from self._not_placed(scheduler)
        yield from self._not_whole()
        if at - self.latest < still_s and not (self._moves_without_proof() or self._goes_by_the_clock()):
            yield f"the operator still writes: {self._latest_write} at {self.latest:.3f}"

    def _not_placed(self, scheduler: str) -> Iterator[str]:
        places, may_force = Places(self._view), not self._evicts_victims(scheduler)
        served = {scheduler, *self._served()}
        for pod in self._view.objects("pods"):
            name, wanted = pod["metadata"]["name"], pod["spec"].get("schedulerName")
            if wanted not in served or is_over(pod) or node_of(pod):
                continue
            place = next(places.of(pod), "")
            if place:
                yield f"{name} is not placed, though {place} has room"
            elif wanted == scheduler and may_force and (place := next(places.by_force(pod), "")):
                yield f"{name} is not placed, though less important pods fill {place}"

    def _served(self) -> Iterator[str]:
        """The scheduler names of all policies that are at work."""
        for policy in self._view.objects(POLICIES):
            spec = policy["spec"]
            if spec.get("scheduling") and is_ready(policy) and not spec.get("suspend"):
                yield spec["scheduling"]["schedulerName"]

    def _evicts_victims(self, scheduler: str) -> bool:
        """Whether budgets may forbid to make room for pods of a scheduler."""
        scheduling = [each["spec"].get("scheduling") or {} for each in self._view.objects(POLICIES)]
        return any(
            (each.get("preemption") or {}).get("viaEviction")
            for each in scheduling
            if each.get("schedulerName") == scheduler
        )

    def _not_whole(self) -> Iterator[str]:
        for workload in self._view.objects("deployments.apps"):
            meta, spec = workload["metadata"], workload["spec"]
            sets = {
                each["metadata"]["uid"]
                for each in self._view.objects("replicasets.apps")
                if controller_of(each) == meta["uid"]
            }
            # By owner: who relabels a pod of another workload does not make it one of this.
            own = [
                pod
                for pod in self._view.objects("pods")
                if controller_of(pod) in sets and not is_over(pod) and not is_leaving(pod)
            ]
            wanted = spec["replicas"]
            # A rollout that waits for room, or for ready pods, keeps its surge: a quarter, rounded up.
            is_through = all(node_of(pod) and is_ready(pod) for pod in own)
            if not wanted <= len(own) <= wanted + (0 if is_through else -(-wanted // 4)):
                yield f"{meta['name']} has {len(own)} pods, not {wanted}"

    def _goes_by_the_clock(self) -> bool:
        """Whether budgets of a policy open and close by the clock, and its proposals come and go with them.

        Moves end when there is nothing left to move; what is only proposed or predicted stays so.
        """
        return any(
            spec.get("mode") in ("Approve", "DryRun")
            and any(each.get("schedule") for each in (spec.get("limits") or {}).get("budgets") or ())
            for spec in self._rebalancing()
        )

    def _moves_without_proof(self) -> bool:
        """Whether a policy evicts as descheduler does, whose moves may go back and forth for ever."""
        return any(
            spec.get("planner") == "Upstream" and spec.get("mode") == "Enforce"
            for spec in self._rebalancing()
        )

    def _rebalancing(self) -> Iterator[Obj]:
        """How policies may move pods now: as they say, or as they said before what cannot be used."""
        for policy in self._view.objects(POLICIES):
            key = ("", policy["metadata"]["name"])
            for version in [policy] if is_accepted(policy) else self._view.versions(POLICIES, key, -math.inf):
                yield rebalancing_of(version)
