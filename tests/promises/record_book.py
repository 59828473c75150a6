"""RecordBook follows each Eviction record from its creation to its deletion, and which pods were evicted."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from promises.commits import Commit, Obj
from promises.view import RECORDS

#: Seconds in which an operator may not know yet that somebody has deleted or edited a record.
UNSEEN_S = 10.0

#: Seconds after its answer in which an eviction may take effect that was answered with 504.
LATE_S = 5.0

#: The annotation by which people approve a move.
APPROVED = "plimsoll.dev/approved"

#: The strategy of records of victims of preemption.
PREEMPTION = "DefaultPreemption"


@dataclass(slots=True)
class RecordStory:
    """What has become of one record; times are infinite until it happens.

    Attributes:
        entered: When each phase was first seen.
        is_meddled: Whether somebody else has made it or written into it: then it need not be true.
        approved_until: When somebody took the approval back; infinite while it is approved, and -inf before.
        undone_at: When somebody else deleted it, or changed its phase, while it was Evicting.
        evicted_at: When its pod was evicted by the operator.
    """

    uid: str
    key: tuple[str, str]
    spec: Obj
    born_at: float
    phase: str = ""
    status: Obj = field(default_factory=dict)
    approved_until: float = -math.inf
    entered: dict[str, float] = field(default_factory=dict)
    is_meddled: bool = False
    undone_at: float = -math.inf
    evicted_at: float = math.inf
    gone_at: float = math.inf

    @property
    def pod(self) -> str:
        """The uid of its pod."""
        return str(self.spec["pod"]["uid"])

    @property
    def owner(self) -> str:
        """The uid of the pod's controller, or ""."""
        return str((self.spec.get("owner") or {}).get("uid") or "")

    @property
    def is_victim(self) -> bool:
        """Whether its pod was preempted."""
        return bool(self.spec.get("strategy") == PREEMPTION)

    @property
    def is_there(self) -> bool:
        """Whether it still exists."""
        return self.gone_at == math.inf

    def has_time(self, phase: str) -> str:
        """When a phase was reached by the clock of its writer, or ""."""
        transitions = self.status.get("transitions") or ()
        return next((each["time"] for each in transitions if each["phase"] == phase), "")


class RecordBook:
    """The stories of all records, also of those that are gone."""

    def __init__(self) -> None:
        self.by_uid: dict[str, RecordStory] = {}
        self._of_pod: dict[str, list[RecordStory]] = {}

    def judge(self, commit: Commit) -> None:
        """A commit of any collection."""
        if commit.collection != RECORDS:
            return
        meta = commit.obj["metadata"]
        story = self.by_uid.get(meta["uid"])
        if story is None:
            story = RecordStory(meta["uid"], commit.key, commit.obj["spec"], commit.at)
            story.is_meddled = not commit.author.name
            self.by_uid[story.uid] = story
            self._of_pod.setdefault(story.pod, []).append(story)
        status = commit.obj.get("status") or {}
        phase, is_others = status.get("phase") or "", not commit.author.name
        if is_others and status != story.status:
            story.is_meddled = True
        if is_others and story.phase == "Evicting" and (commit.type == "DELETED" or phase != "Evicting"):
            story.undone_at = commit.at
        story.status, story.phase = status, phase
        if (meta.get("annotations") or {}).get(APPROVED) == "true":
            story.approved_until = math.inf
        else:
            story.approved_until = min(story.approved_until, commit.at)
        if story.phase:
            story.entered.setdefault(story.phase, commit.at)
        if commit.type == "DELETED":
            story.gone_at = commit.at

    def of_pod(self, uid: str) -> list[RecordStory]:
        """The records of a pod."""
        return self._of_pod.get(uid, [])

    def announced(self, uid: str, at: float) -> list[RecordStory]:
        """Those that say, or said until somebody undid it, that the pod is about to be evicted.

        What somebody else wrote counts for nothing next to what the operator announced itself.
        """
        records = self.of_pod(uid)
        undone = [each for each in records if at - each.undone_at < UNSEEN_S]
        # Who has seen that it was undone writes another one, which then is the only one that counts.
        said = [each for each in records if each.is_there and _says_so(each, at)] or undone[-1:]
        return [each for each in said if not each.is_meddled] or said


def _says_so(record: RecordStory, at: float) -> bool:
    """Whether a record announces an eviction, or has just said that one happened which had not yet."""
    is_late = record.evicted_at == math.inf and at - record.entered.get("Evicted", -math.inf) <= LATE_S
    return record.phase == "Evicting" or is_late
