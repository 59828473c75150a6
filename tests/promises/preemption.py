"""PreemptionPromise: a victim gives way to a pod of higher priority, and no nomination is left behind."""

from __future__ import annotations

from collections.abc import Container, Iterator

from promises.commits import Commit, Obj
from promises.evictions import is_eviction, is_removal
from promises.findings import Findings
from promises.pods import is_leaving, is_over, node_of, priority_of
from promises.policies import scheduling_of
from promises.record_book import RecordBook
from promises.view import View


class PreemptionPromise:
    """Judges which pods are preempted, and for whom."""

    def __init__(self, view: View, findings: Findings, book: RecordBook) -> None:
        self._view = view
        self._findings = findings
        self._book = book

    def judge(self, commit: Commit) -> None:
        """A commit of any collection."""
        if not is_removal(commit):
            return
        victim, uid = commit.before or commit.obj, commit.obj["metadata"]["uid"]
        records = self._book.announced(uid, commit.at)
        if is_eviction(commit.author) and not any(each.is_victim for each in records):
            return
        if node_of(victim) and not any(self._preempts(key, victim, commit.at) for key in self._keys()):
            name, priority = victim["metadata"]["name"], priority_of(victim)
            sentence = f"{name} of priority {priority} was preempted, and no pod of a higher one waits"
            self._findings.violated(commit.at, sentence)

    def _keys(self) -> list[tuple[str, str]]:
        return self._view.known("pods")

    def _preempts(self, key: tuple[str, str], victim: Obj, at: float) -> bool:
        """Whether a pod waited lately that may preempt the victim."""
        return any(
            each is not None
            and not node_of(each)
            and not is_leaving(each)
            and (priority_of(each) > priority_of(victim) or self._reclaims(each, victim, at))
            and each["spec"].get("preemptionPolicy") != "Never"
            for each in self._view.recent("pods", key, at)
        )

    def _reclaims(self, pod: Obj, victim: Obj, at: float) -> bool:
        """Whether both are of different queues of one scheduler, and the victim's may lose pods to others."""
        if pod["spec"].get("schedulerName") != victim["spec"].get("schedulerName"):
            return False
        for scheduling in scheduling_of(self._view, victim, at):
            fair = scheduling.get("fairShare") or {}
            queues = {each["name"]: each for each in fair.get("queues") or ()}
            mine, other = (_queue_of(each, queues) for each in (victim, pod))
            may_lose = queues.get(mine, {}).get("reclaimable", True)
            if fair.get("reclaim") == "AboveDeserved" and mine != other and may_lose:
                return True
        return False

    def unfinished(self, still_s: float, at: float) -> Iterator[str]:
        """Pods that wait for a nominated node which no victim leaves any more."""
        leaving = {node_of(each) for each in self._view.objects("pods") if is_leaving(each)}
        for pod in self._view.objects("pods"):
            nominated = (pod.get("status") or {}).get("nominatedNodeName")
            if not nominated or node_of(pod) or is_over(pod) or is_leaving(pod) or nominated in leaving:
                continue
            meta = pod["metadata"]
            since = self._view.versions("pods", (meta.get("namespace") or "", meta["name"]), at - still_s)
            if all(
                each is not None and (each.get("status") or {}).get("nominatedNodeName") for each in since
            ):
                yield f"{meta['name']} is still nominated to {nominated}, which no victim leaves"


def _queue_of(pod: Obj, queues: Container[str]) -> str:
    named = (pod["metadata"].get("labels") or {}).get("plimsoll.dev/queue", "")
    return named if named in queues else "default"
