"""FinalStatePromise: once nothing goes wrong any more, no pod is lost and a converged cluster stays still."""

from __future__ import annotations

from collections.abc import Iterator

from promises.commits import Commit, Obj
from promises.pods import controller_of, is_leaving, is_over, is_ready, node_of
from promises.quantities import milli, requests
from promises.selectors import selects
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
        if at - self.latest < still_s and not self._moves_without_proof():
            yield f"the operator still writes: {self._latest_write} at {self.latest:.3f}"

    def _not_placed(self, scheduler: str) -> Iterator[str]:
        free = self._free()
        for pod in self._view.objects("pods"):
            if pod["spec"].get("schedulerName") != scheduler or is_over(pod) or node_of(pod):
                continue
            wanted = requests(pod)
            fits = [
                node for node, room in free.items() if all(room.get(k, 0) >= v for k, v in wanted.items())
            ]
            if fits:
                yield f"{pod['metadata']['name']} is not placed, though {fits[0]} has room"

    def _not_whole(self) -> Iterator[str]:
        for workload in self._view.objects("deployments.apps"):
            meta, spec = workload["metadata"], workload["spec"]
            own = [
                pod
                for pod in self._view.objects("pods")
                if pod["metadata"]["namespace"] == meta["namespace"]
                and controller_of(pod)
                and selects(spec["selector"], pod["metadata"].get("labels"))
                and not is_over(pod)
                and not is_leaving(pod)
            ]
            wanted = spec["replicas"]
            # A rollout that waits for room, or for ready pods, keeps its surge: a quarter, rounded up.
            is_through = all(node_of(pod) and is_ready(pod) for pod in own)
            if not wanted <= len(own) <= wanted + (0 if is_through else -(-wanted // 4)):
                yield f"{meta['name']} has {len(own)} pods, not {wanted}"

    def _moves_without_proof(self) -> bool:
        """Whether a policy evicts as descheduler does, whose moves may go back and forth for ever."""
        return any(
            spec.get("planner") == "Upstream" and spec.get("mode") == "Enforce"
            for spec in (each["spec"].get("rebalancing") or {} for each in self._view.objects(POLICIES))
        )

    def _free(self) -> dict[str, dict[str, int]]:
        """The room of each node that takes pods."""
        free = {
            node["metadata"]["name"]: {
                key: milli(text) for key, text in node["status"]["allocatable"].items()
            }
            for node in self._view.objects("nodes")
            if _takes_pods(node)
        }
        for pod in self._view.objects("pods"):
            room = free.get(node_of(pod))
            if room is not None and not is_over(pod):
                for name, amount in requests(pod).items():
                    room[name] = room.get(name, 0) - amount
        return free


def _takes_pods(node: Obj) -> bool:
    spec = node["spec"]
    return is_ready(node) and not spec.get("unschedulable") and not spec.get("taints")
