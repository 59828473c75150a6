"""RestPromise: moves converge, since what a move taught is on record.

An owner whose move was fruitless is left alone by that strategy for ten minutes; and once nothing goes wrong
any more, an owner's pods are moved a few times at most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from promises.commits import Commit
from promises.findings import Findings
from promises.lives import PodLives
from promises.moments import seconds
from promises.record_book import RecordBook, RecordStory
from promises.records import STRANDED
from promises.view import RECORDS

#: Seconds by the operator's clock, less two, as its times are whole seconds.
HOLD_BACK_S = 598.0

#: Moves of an owner, beyond one for each of its pods, after the faults.
SOME = 3


class RestPromise:
    """Follows the moves of each owner."""

    def __init__(self, findings: Findings, lives: PodLives, book: RecordBook) -> None:
        self._findings = findings
        self._lives = lives
        self._book = book

    def judge(self, commit: Commit) -> None:
        """A commit of any collection."""
        if commit.collection != RECORDS or not commit.author.name:
            return
        story = self._book.by_uid[commit.obj["metadata"]["uid"]]
        before = ((commit.before or {}).get("status") or {}).get("phase")
        is_sent = story.phase == "Evicting" != before and commit.type == "MODIFIED"
        if is_sent and not story.is_victim and story.owner and story.spec.get("planner") != "Upstream":
            for problem in self._untaught(story):
                self._findings.violated(commit.at, f"the record {story.key[1]} {problem}")

    def _untaught(self, story: RecordStory) -> Iterator[str]:
        sent, fruitless = story.has_time("Evicting"), ""
        if not sent:
            return
        for past in sorted(self._past(story), key=lambda each: each.has_time(each.phase)):
            ended = seconds(past.has_time(past.phase))
            is_recent = 0.0 <= seconds(sent) - ended < HOLD_BACK_S
            if past.phase == "Settled":
                fruitless = ""
            elif is_recent:
                fruitless = f"moves a pod whose owner is to be left alone: {past.key[1]} is {past.phase}"
        if fruitless:
            yield fruitless

    def _past(self, story: RecordStory) -> Iterator[RecordStory]:
        """Moves of the same owner by the same strategy that have ended and are still on record."""
        for each in self._book.by_uid.values():
            is_same = (each.owner, each.spec["strategy"]) == (story.owner, story.spec["strategy"])
            is_stranded = each.phase == "Failed" and each.status.get("reason") in STRANDED
            has_ended = each.phase in ("Settled", "Returned") or is_stranded
            if is_same and has_ended and each.is_there and not each.is_meddled and each is not story:
                yield each

    def unfinished(self, calm_since: float) -> Iterator[str]:
        """Owners whose pods are moved again and again since nothing goes wrong any more."""
        moved = Counter(
            each.owner
            for each in self._book.by_uid.values()
            if each.owner
            and not each.is_victim
            and each.spec.get("planner") != "Upstream"
            and calm_since < each.entered.get("Evicted", 0.0)
        )
        for owner, times in moved.items():
            pods = sum(1 for life in self._lives.owned(owner) if life.gone_at > calm_since)
            if times > pods + SOME:
                yield f"pods of {owner} were moved {times} times since {calm_since:.0f}"
