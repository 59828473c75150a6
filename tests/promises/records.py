"""RecordPromise: each record is of a pod that was there, moves along allowed phases, is true, and ends."""

from __future__ import annotations

import math
from collections.abc import Iterator

from promises.commits import Commit, Obj
from promises.findings import Findings
from promises.lives import PodLife, PodLives
from promises.policies import is_accepted, rebalancing_of
from promises.record_book import RecordBook, RecordStory
from promises.view import POLICIES, RECORDS, View

#: The phases that may follow each; "" is a record that was just made.
FOLLOWING = {
    "": ("Predicted", "Planned"),
    "Planned": ("Evicting", "Surging", "Blocked", "Failed", "Cancelled"),
    "Evicting": ("Evicted", "Blocked", "Failed", "Cancelled"),
    "Evicted": ("Settled", "Returned", "Failed", "Cancelled"),
    "Surging": ("Settled", "Returned", "Failed", "Cancelled"),
}

#: Phases of moves that end within seconds; a replacement may be waited for much longer.
PASSING = frozenset(("Planned", "Evicting"))

#: Phases in which the operator must not forget a move.
UNDER_WAY = frozenset(("Evicting", "Evicted", "Surging"))

#: Reasons of a Failed record whose pod was evicted, but not replaced in time.
STRANDED = frozenset(("NoReplacement", "ReplacementNotRunning", "ReplacementNotReady"))

#: Seconds that a replacement gets; clocks differ in speed.
PATIENCE_S = 300.0 * 0.89

#: Where an author says in how many seconds a rollout must progress, and how many those are by default.
DEPLOYMENTS, LONGEST_S = "deployments.apps", 600


class RecordPromise:
    """Judges the records of moves."""

    def __init__(self, view: View, findings: Findings, lives: PodLives, book: RecordBook) -> None:
        self._view = view
        self._findings = findings
        self._lives = lives
        self._book = book
        self._written: dict[str, float] = {}  #: the last write of each record

    def judge(self, commit: Commit) -> None:
        """A commit of any collection."""
        if commit.collection != RECORDS:
            return
        story = self._book.by_uid[commit.obj["metadata"]["uid"]]
        self._written[story.uid] = commit.at
        before = (commit.before or {}).get("status") or {}
        is_entered = bool(story.phase) and story.phase != before.get("phase") and commit.type != "DELETED"
        if is_entered:
            facts, author = self._findings.facts, commit.author.name
            facts.phases[story.phase] = facts.phases.get(story.phase, 0) + 1
            facts.transitions[before.get("phase") or "", story.phase, author] += 1
        if not commit.author.name or story.is_meddled:
            return
        problems = [*self._of_write(commit, story, before)]
        if is_entered:
            problems += self._untrue(story, commit.at)
        for problem in problems:
            self._findings.violated(commit.at, f"the record {story.key[1]} {problem}")

    def _of_write(self, commit: Commit, story: RecordStory, before: Obj) -> Iterator[str]:
        pod = story.spec["pod"]
        if commit.type == "ADDED":
            life = self._lives.find(pod["uid"])
            if life is None or life.key != (pod["namespace"], pod["name"]):
                yield f"is of the pod {pod['name']} ({pod['uid']}), which never existed"
        elif commit.type == "DELETED":
            if story.phase in UNDER_WAY:
                yield f"was deleted while it was {story.phase}"
        else:
            if commit.before is not None and commit.before["spec"] != commit.obj["spec"]:
                yield "has another spec than before"
            yield from _of_phases(story, before)

    # -- truth -------------------------------------------------------------------------------------------

    def _untrue(self, story: RecordStory, at: float) -> Iterator[str]:
        life = self._lives.find(story.pod)
        if life is None:
            return
        reason = story.status.get("reason")
        was_evicted = any(each["phase"] == "Evicted" for each in story.status.get("transitions") or ())
        match story.phase:
            case "Evicted":
                if life.left_at > at:
                    yield f"is Evicted, but {life.key[1]} has not left"
            case "Settled" if reason == "Left":
                if min(life.gone_at, life.over_at) > at:
                    yield f"is Settled, but the victim {life.key[1]} is still there"
            case "Settled" if reason == "NoReplacement":
                if life.left_at > at:
                    yield f"is Settled, but {life.key[1]} has not left"
            case "Settled" | "Returned":
                yield from self._misplaced(story, life)
            case "Failed" if reason in STRANDED:
                yield from self._impatient(story, life, at)
            case "Blocked" | "Cancelled" | "Failed":
                if story.evicted_at < math.inf and not was_evicted:
                    yield f"is {story.phase} ({reason}), but {life.key[1]} was evicted"

    def _misplaced(self, story: RecordStory, moved: PodLife) -> Iterator[str]:
        """Whether the replacement is one, and is where the record says."""
        if moved.left_at == math.inf and not (story.phase == "Returned" and "surge" in story.spec):
            yield f"is {story.phase}, but {moved.key[1]} has not left"
        given = story.status.get("replacement") or {}
        life = self._lives.find(given.get("uid", ""))
        if life is None:
            yield f"is {story.phase} by a replacement that never existed"
            return
        name, source = life.key[1], story.spec["fromNode"]
        is_other = bool(story.owner) and life.controller != story.owner and "surge" not in story.spec
        if life.uid == moved.uid or is_other:
            yield f"is {story.phase} by {name}, which replaces another pod"
        if life.node != given.get("node"):
            yield f"is {story.phase} by {name} on {given.get('node')}, which is on {life.node or 'no node'}"
        is_back = life.node == source
        if story.phase == "Settled" and not life.spans:
            yield f"is Settled by {name}, which was never ready"
        if story.phase == "Settled" and is_back and story.spec.get("purpose") != "Restart":
            yield f"is Settled by {name} on {source}, the node that was left"
        if story.phase == "Returned" and not is_back:
            yield f"is Returned by {name} on {life.node}, not on {source}"
        if story.phase == "Returned" and not life.has_run:
            yield f"is Returned by {name}, which never ran"
        for other in self._book.by_uid.values():
            replacement = other.status.get("replacement") or {}
            is_final = other.phase in ("Settled", "Returned") and other.is_there
            if other is not story and is_final and replacement.get("uid") == life.uid:
                yield f"is {story.phase} by {name}, as {other.key[1]} is"

    def _impatient(self, story: RecordStory, moved: PodLife, at: float) -> Iterator[str]:
        """Whether a replacement was not waited for, or was there."""
        if "surge" in story.spec:
            yield from self._hasty(story, at)
            return
        if not story.owner:
            return
        since = min(story.evicted_at, moved.left_at)
        if at - since < PATIENCE_S:
            yield f"is Failed ({story.status.get('reason')}) {at - since:.0f} s after its pod has left"
        else:
            yield from self._replaced(story, since, at - self._view.stale_s)

    def _hasty(self, story: RecordStory, at: float) -> Iterator[str]:
        """Whether a rollout got less time than its Deployment's author gives it."""
        deployment = self._view.find(DEPLOYMENTS, story.key[0], story.spec["surge"]["deployment"])
        if deployment is None:
            return
        deadline_s = deployment["spec"].get("progressDeadlineSeconds", LONGEST_S)
        waited_s = at - story.entered.get("Surging", at)
        if waited_s < min(PATIENCE_S, 0.89 * deadline_s):
            yield f"is Failed ({story.status.get('reason')}) {waited_s:.0f} s after its rollout began"

    def _replaced(self, story: RecordStory, since: float, until: float) -> Iterator[str]:
        """Whether pods of the owner were made since, and are ready, that no other record counts.

        A pod does not say which one it was made for. Where other pods have left since, who waits for a
        replacement cannot know whether that is his or theirs: no record counts the replacements of victims of
        preemption, and pods that were deleted, by preemption or by hand, were not evicted for one.
        """
        counted = {
            (each.status.get("replacement") or {}).get("uid")
            for each in self._book.by_uid.values()
            if each.owner == story.owner and each is not story
        }
        waiting = sum(
            each.phase in UNDER_WAY or (each.is_victim and since <= each.evicted_at < math.inf)
            for each in self._book.by_uid.values()
            if each.owner == story.owner and each is not story
        ) + sum(
            each.born_at <= since <= each.left_at < math.inf
            and all(record.evicted_at == math.inf for record in self._book.of_pod(each.uid))
            for each in self._lives.owned(story.owner)
        )
        ready = [
            life.key[1]
            for life in self._lives.owned(story.owner)
            if life.born_at > since
            and life.uid not in counted
            and life.is_serving
            and life.spans[-1][0] < until
        ]
        if len(ready) > waiting:
            yield f"is {story.phase}, though {ready[0]} has taken the place of {story.spec['pod']['name']}"

    # -- the end -----------------------------------------------------------------------------------------

    def unfinished(self, still_s: float, at: float) -> Iterator[str]:
        """What is left in the middle, or waits for a replacement that is there."""
        for story in self._book.by_uid.values():
            if not story.is_there or self._written[story.uid] >= at - still_s or story.is_meddled:
                continue
            name = story.key[1]
            if story.phase in PASSING and story.spec.get("mode") != "Approve":
                yield f"the record {name} is still {story.phase}"
            elif story.phase == "Planned" and self._has_ended(story, at - still_s):
                yield f"the record {name} is still Planned, though its policy has ended"
            elif story.phase == "Evicted" and story.owner:
                for problem in self._replaced(story, story.entered["Evicted"], at - still_s):
                    yield f"the record {name} {problem}"

    def _has_ended(self, story: RecordStory, since: float) -> bool:
        """Whether the policy of a proposal has been gone or changed since then.

        A spec that cannot be used leaves the one before it in force.
        """
        versions = self._view.versions(POLICIES, ("", story.spec["policy"]), since)
        return all(
            each is None
            or (
                is_accepted(each)
                and (bool(each["spec"].get("suspend")) or rebalancing_of(each).get("mode") != "Approve")
            )
            for each in versions
        )


def _of_phases(story: RecordStory, before: Obj) -> Iterator[str]:
    """Whether the phases that it has been through follow one another, and go on where they were."""
    passed = [each["phase"] for each in story.status.get("transitions") or ()]
    earlier = [each["phase"] for each in before.get("transitions") or ()]
    if passed[: len(earlier)] != earlier:
        yield f"went through {earlier}, and now says {passed}"
    if story.phase and passed[-1:] != [story.phase]:
        yield f"is {story.phase}, and says that it went through {passed}"
    for one, other in zip(["", *passed], passed, strict=False):
        if other not in FOLLOWING.get(one, ()):
            yield f"became {other} from {one or 'nothing'}"
    if story.spec.get("mode") == "DryRun" and story.phase not in ("", "Predicted"):
        yield f"is {story.phase} in a dry run"
