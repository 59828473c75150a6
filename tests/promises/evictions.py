"""EvictionPromise: no pod is removed without an earlier record, in place of another, or against a budget."""

from __future__ import annotations

import json
import re

from promises.commits import Author, Commit, Obj
from promises.election import ElectionPromise
from promises.findings import Findings
from promises.pods import condition_of, is_leaving, is_ready
from promises.record_book import RecordBook
from promises.selectors import selects
from promises.view import BUDGETS, View

EVICTION = re.compile(r"/api/v1/namespaces/([^/]+)/pods/([^/]+)/eviction")


class EvictionPromise:
    """Judges removals of pods by the operator."""

    def __init__(self, view: View, findings: Findings, election: ElectionPromise, book: RecordBook) -> None:
        self._view = view
        self._findings = findings
        self._election = election
        self._book = book

    def judge_request(self, author: Author, at: float) -> None:
        """No pod is asked to leave that is leaving, as every watch has shown."""
        found = EVICTION.fullmatch(author.path)
        if found is None or not author.name:
            return
        uid = asked_uid(author)
        versions = self._view.recent("pods", (found[1], found[2]), at)
        if all(each is not None and each["metadata"]["uid"] == uid and is_leaving(each) for each in versions):
            self._findings.violated(at, f"{author.name} asked {found[2]} to leave, which is leaving")

    def judge(self, commit: Commit) -> None:
        """A commit of any collection."""
        if is_removal(commit):
            self._removed(commit.obj, commit.before or commit.obj, commit.author, commit.at)

    def _removed(self, pod: Obj, before: Obj, author: Author, at: float) -> None:
        """A pod is deleted, or about to be, by a request of the operator."""
        meta = pod["metadata"]
        self._findings.facts.evictions += 1
        self._election.must_lead(author, f"removed {meta['name']}", at)
        if not is_eviction(author):
            if not condition_of(pod, "DisruptionTarget"):
                self._findings.violated(at, f"{author.name} deleted {meta['name']} without saying why")
            return
        asked = asked_uid(author)
        if asked != meta["uid"]:
            self._findings.violated(
                at, f"the eviction of {meta['name']} named the uid {asked}, the pod has {meta['uid']}"
            )
        records = self._book.announced(meta["uid"], at)
        if not records:
            self._findings.violated(at, f"{author.name} evicted {meta['name']} without a record of that")
        ours = [each for each in records if not each.is_meddled]
        if len(ours) > 1:
            names = " and ".join(each.key[1] for each in ours)
            self._findings.violated(at, f"{meta['name']} was evicted with two records: {names}")
        for record in records:
            record.evicted_at = at
        if is_ready(before):
            self._within_budgets(meta, at)

    def _within_budgets(self, meta: Obj, at: float) -> None:
        for budget in self._view.objects(BUDGETS):
            selector = budget["spec"].get("selector")
            inside = budget["metadata"]["namespace"] == meta["namespace"]
            if not inside or selector is None or not selects(selector, meta.get("labels")):
                continue
            wanted = budget.get("status", {}).get("desiredHealthy", 0)
            healthy = sum(
                is_ready(other)
                and not is_leaving(other)
                and other["metadata"]["uid"] != meta["uid"]
                and other["metadata"]["namespace"] == meta["namespace"]
                and selects(selector, other["metadata"].get("labels"))
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


def is_eviction(author: Author) -> bool:
    """Whether a request goes to the Eviction API."""
    return EVICTION.fullmatch(author.path) is not None


def asked_uid(author: Author) -> str:
    """The uid that an eviction has as precondition, or ""."""
    options = json.loads(author.body).get("deleteOptions") or {}
    return str((options.get("preconditions") or {}).get("uid") or "")
