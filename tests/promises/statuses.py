"""StatusPromise: at the end the status of each policy is about its present spec, and counts what happened."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from promises.commits import Commit, Obj
from promises.pods import condition_of
from promises.policies import is_accepted, rebalancing_of
from promises.record_book import RecordBook
from promises.view import POLICIES, View

#: What a policy's totals count, by the phase of its records.
TOTALS = {
    "moved": ("Settled",),
    "returned": ("Returned",),
    "failed": ("Failed",),
    "blocked": ("Blocked",),
    "open": ("Planned", "Evicting", "Evicted", "Surging"),
    "predicted": ("Predicted",),
}


class StatusPromise:
    """Reads what policies say of themselves."""

    def __init__(self, view: View, book: RecordBook) -> None:
        self._view = view
        self._book = book
        self._touched: dict[str, float] = {}  #: when a record of each policy, or its spec, was last written

    def judge(self, commit: Commit) -> None:
        """A commit of any collection."""
        if commit.collection == "evictions.plimsoll.dev":
            self._touched[commit.obj["spec"]["policy"]] = commit.at
        elif commit.collection == POLICIES and commit.obj["spec"] != (commit.before or {}).get("spec"):
            self._touched[commit.obj["metadata"]["name"]] = commit.at

    def unfinished(self, still_s: float, at: float) -> Iterator[str]:
        """What is not true of policies to which nothing has happened for a while.

        What people write into records is not read back, so totals of such policies are not judged.
        """
        meddled = {each.spec["policy"] for each in self._book.by_uid.values() if each.is_meddled}
        for policy in self._view.objects(POLICIES):
            name = policy["metadata"]["name"]
            if self._touched.get(name, 0.0) < at - still_s:
                of_totals = () if name in meddled else self._of_totals(policy)
                for problem in (*_of_conditions(policy), *of_totals):
                    yield f"the policy {name} {problem}"

    def _of_totals(self, policy: Obj) -> Iterator[str]:
        totals = (policy.get("status") or {}).get("totals")
        if totals is None or not rebalancing_of(policy):
            return
        phases = Counter(
            each.phase
            for each in self._book.by_uid.values()
            if each.is_there and not each.is_victim and each.spec["policy"] == policy["metadata"]["name"]
        )
        for name, counted in TOTALS.items():
            there = sum(phases[phase] for phase in counted)
            if totals.get(name, 0) != there:
                yield f"counts {totals.get(name, 0)} moves {name}, its records say {there}"


def _of_conditions(policy: Obj) -> Iterator[str]:
    status = policy.get("status") or {}
    generation = policy["metadata"].get("generation")
    if generation is not None and status.get("observedGeneration") != generation:
        yield f"has generation {generation}, its status is about {status.get('observedGeneration')}"
    if is_accepted(policy):
        for kind in ("Accepted", "Ready"):
            found = condition_of(policy, kind)
            if found.get("status") != "True" and not policy["spec"].get("suspend"):
                yield f"is {kind} {found.get('status')} ({found.get('reason')})"
