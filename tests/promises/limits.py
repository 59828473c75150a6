"""LimitPromise: no run evicts more pods than its policy allows, and none while a budget's window forbids it.

Counted are evictions whose records are still there: the operator has no other memory of earlier ones, and a
record that somebody deletes is forgotten. A ceiling is the loosest that was in force
(:func:`promises.policies.in_force`); the population that a share refers to is the largest of late.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from promises.commits import Commit, Obj
from promises.evictions import is_eviction, is_removal
from promises.findings import Findings
from promises.lives import PodLives, most
from promises.moments import is_open, seconds
from promises.policies import allowed, in_force, limits_of, rebalancing_of
from promises.record_book import RecordBook, RecordStory
from promises.view import POLICIES, View

#: Seconds of a minute as a clock measures it that is fast.
MINUTE_S = 60.0 * 0.9

#: The least that an operator waits between two evictions of an owner: until the replacement is ready.
FLYING = frozenset(("Evicting", "Evicted", "Surging"))


class LimitPromise:
    """Counts evictions by policies."""

    def __init__(self, view: View, findings: Findings, lives: PodLives, book: RecordBook) -> None:
        self._view = view
        self._findings = findings
        self._lives = lives
        self._book = book

    def judge(self, commit: Commit) -> None:
        """A commit of any collection."""
        if commit.collection == POLICIES and commit.author.name and commit.type == "MODIFIED":
            self._reported(commit)
        elif is_removal(commit) and is_eviction(commit.author):
            for record in self._book.announced(commit.obj["metadata"]["uid"], commit.at):
                if not record.is_victim:
                    self._evicted(record, commit.at)

    # -- at each eviction --------------------------------------------------------------------------------

    def _evicted(self, record: RecordStory, at: float) -> None:
        policies = [each for each in in_force(self._view, record, at) if each is not None]
        if not policies:
            return
        for problem in self._at_eviction(record, policies, at):
            name = record.spec["pod"]["name"]
            self._findings.violated(at, f"{name} was evicted for {record.spec['policy']}: {problem}")

    def _at_eviction(self, record: RecordStory, policies: list[Obj], at: float) -> Iterator[str]:
        placed = [(each.bound_at, each.gone_at) for each in self._lives.by_uid.values()]
        lately = self._counted(
            lambda other: other.spec["policy"] == record.spec["policy"] and at - other.evicted_at < MINUTE_S
        )
        yield from self._beyond(policies, "perMinute", len(lately) + 1, placed, at)
        group = (record.spec.get("bundle") or {}).get("group")
        if group:
            yield from self._not_whole(record)
        elif record.owner:
            flying = self._flying(record.owner, at)
            owned = [(each.bound_at, each.gone_at) for each in self._lives.owned(record.owner)]
            yield from self._beyond(policies, "perWorkload", len(flying) + 1, owned, at)
        sent = record.has_time("Evicting")
        if sent and all(_is_frozen(each, seconds(sent)) for each in policies):
            yield "a budget of the policy allows none at that time"

    def _not_whole(self, record: RecordStory) -> Iterator[str]:
        """A group leaves whole: all of its moves were announced before the first eviction."""
        bundle = record.spec["bundle"]
        told = [
            each
            for each in self._book.by_uid.values()
            if each.spec["policy"] == record.spec["policy"]
            and (each.spec.get("bundle") or {}).get("name") == bundle["name"]
            and each.has_time("Evicting")
        ]
        if len(told) < bundle["moves"]:
            yield f"{len(told)} of {bundle['moves']} moves of {bundle['group']} were announced"

    def _flying(self, owner: str, at: float) -> list[RecordStory]:
        """Those of an owner whose replacement is not ready yet; their records may follow later.

        A pod that was made since replaces one of them.
        """
        sent = self._counted(lambda other: other.owner == owner and other.phase in FLYING)
        made = [
            each.born_at for each in self._lives.owned(owner) if any(begin <= at for begin, _ in each.spans)
        ]
        left = []
        for each in sorted(sent, key=lambda other: other.evicted_at):
            since = [born_at for born_at in made if born_at >= each.evicted_at]
            if since:
                made.remove(min(since))
            else:
                left.append(each)
        return left

    def _counted(self, counts: Callable[[RecordStory], bool]) -> list[RecordStory]:
        return [
            each
            for each in self._book.by_uid.values()
            if each.is_there
            and not each.is_meddled
            and not each.is_victim
            and each.evicted_at < math.inf
            and counts(each)
        ]

    def _beyond(
        self, policies: Iterable[Obj], level: str, used: int, spans: list[tuple[float, float]], at: float
    ) -> Iterator[str]:
        there = most(spans, at - self._view.stale_s, at)
        ceiling = max(allowed(limits_of(each)[level], there) for each in policies)
        if used > ceiling:
            yield f"{used} evictions, {level} is {ceiling:.0f}"

    # -- at the end of each run --------------------------------------------------------------------------

    def _reported(self, commit: Commit) -> None:
        """The status says that a run has ended: what it has evicted is within its ceilings."""
        run = (commit.obj.get("status") or {}).get("lastRun") or {}
        before = ((commit.before or {}).get("status") or {}).get("lastRun") or {}
        if not run.get("completionTime") or run == before or run.get("mode") != "Enforce":
            return
        name = commit.obj["metadata"]["name"]
        begin, end = seconds(run["startTime"]), seconds(run["completionTime"])
        made = self._counted(lambda other: other.spec["policy"] == name and _is_within(other, begin, end))
        if not made:
            return
        first = min(made, key=lambda each: each.born_at)
        policies = [each for each in in_force(self._view, first, commit.at) if each is not None]
        for problem in self._of_run(made, policies, first.born_at):
            self._findings.violated(commit.at, f"a run of {name} made {problem}")

    def _of_run(self, made: list[RecordStory], policies: list[Obj], since: float) -> Iterator[str]:
        lives = self._lives.by_uid.values()
        everywhere = [(each.bound_at, each.gone_at) for each in lives]
        yield from self._beyond(policies, "total", len(made), everywhere, since)
        bare = [each for each in made if "bundle" not in each.spec]
        for node, count in Counter(each.spec["fromNode"] for each in bare).items():
            spans = [(each.bound_at, each.gone_at) for each in lives if each.node == node]
            yield from self._beyond(policies, "perNode", count, spans, since)
        for namespace, count in Counter(each.key[0] for each in made).items():
            spans = [(each.bound_at, each.gone_at) for each in lives if each.key[0] == namespace]
            yield from self._beyond(policies, "perNamespace", count, spans, since)


def _is_within(record: RecordStory, begin: float, end: float) -> bool:
    """Whether a record was sent in a run, by the clock of its operator; times are whole seconds.

    In the second in which a run begins another one may have ended.
    """
    sent = record.has_time("Evicting")
    return bool(sent) and begin < seconds(sent) <= end


def _is_frozen(policy: Obj, moment: float) -> bool:
    """Whether a budget that is open allows no eviction, in the seconds around a moment."""
    budgets = (rebalancing_of(policy).get("limits") or {}).get("budgets") or ()
    return any(
        each["evictions"] in (0, "0%") and all(_holds(each, moment + shift) for shift in (-2.0, 2.0))
        for each in budgets
    )


def _holds(budget: Obj, moment: float) -> bool:
    if not budget.get("schedule"):
        return True
    return is_open(budget["schedule"], budget["duration"], budget.get("timeZone"), moment)
