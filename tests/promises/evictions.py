"""EvictionPromise: no pod is removed without an earlier record, in place of another, or against a budget."""

from __future__ import annotations

import json
import re

from promises.commits import Author, Commit, Obj
from promises.election import ElectionPromise
from promises.findings import Findings
from promises.pods import has_labels, is_leaving, is_ready
from promises.view import View

RECORDS = "evictions.plimsoll.dev"
BUDGETS = "poddisruptionbudgets.policy"
EVICTION = re.compile(r"/api/v1/namespaces/([^/]+)/pods/([^/]+)/eviction")


class EvictionPromise:
    """Judges removals of pods by the operator."""

    def __init__(self, view: View, findings: Findings, election: ElectionPromise) -> None:
        self._view = view
        self._findings = findings
        self._election = election

    def judge(self, commit: Commit) -> None:
        """A commit of any collection."""
        if is_removal(commit):
            self._removed(commit.obj, commit.before or commit.obj, commit.author, commit.at)

    def _removed(self, pod: Obj, before: Obj, author: Author, at: float) -> None:
        """A pod is deleted, or about to be, by a request of the operator."""
        meta = pod["metadata"]
        self._findings.facts.evictions += 1
        self._election.must_lead(author, f"removed {meta['name']}", at)
        if not EVICTION.fullmatch(author.path):
            conditions = (pod.get("status") or {}).get("conditions") or ()
            if not any(each["type"] == "DisruptionTarget" for each in conditions):
                self._findings.violated(at, f"{author.name} deleted {meta['name']} without saying why")
            return
        asked = (json.loads(author.body).get("deleteOptions") or {}).get("preconditions", {}).get("uid")
        if asked != meta["uid"]:
            self._findings.violated(
                at, f"the eviction of {meta['name']} named the uid {asked}, the pod has {meta['uid']}"
            )
        if not any(_covers(record, meta["uid"]) for record in self._view.objects(RECORDS)):
            self._findings.violated(at, f"{author.name} evicted {meta['name']} without a record of that")
        if is_ready(before):
            self._within_budgets(meta, at)

    def _within_budgets(self, meta: Obj, at: float) -> None:
        for budget in self._view.objects(BUDGETS):
            labels = budget["spec"]["selector"].get("matchLabels") or {}
            if budget["metadata"]["namespace"] != meta["namespace"]:
                continue
            if not has_labels({"metadata": meta}, labels):
                continue
            wanted = budget.get("status", {}).get("desiredHealthy", 0)
            healthy = sum(
                has_labels(other, labels)
                and is_ready(other)
                and other["metadata"]["uid"] != meta["uid"]
                and not is_leaving(other)
                for other in self._view.objects("pods")
            )
            if healthy < wanted:
                self._findings.violated(
                    at, f"{meta['name']} was evicted against a budget: {healthy} of {wanted} are left"
                )


def is_removal(commit: Commit) -> bool:
    """Whether the operator has made a pod go that was not going."""
    if commit.collection != "pods" or not commit.author.name:
        return False
    stayed = commit.before is not None and not is_leaving(commit.before)
    return stayed and (commit.type == "DELETED" or is_leaving(commit.obj))


def _covers(record: Obj, uid: str) -> bool:
    spec, status = record.get("spec") or {}, record.get("status") or {}
    return uid in json.dumps(spec) and status.get("phase") == "Evicting"
