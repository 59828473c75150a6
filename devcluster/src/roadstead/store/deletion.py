"""Decides the effect of a DELETE on an object: grace, finalizers, propagation.

Source: apiserver v1.36 ``registry/generic/registry/store.go`` and ``registry/rest/delete.go``, whose order of
decisions this follows.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from roadstead.schemas.timestamps import timestamp_of
from roadstead.store.admission import CONTROLLERS
from roadstead.values.copies import copied

if TYPE_CHECKING:
    from roadstead.kinds.kind import Kind
    from roadstead.values.resources import Obj

ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """The options of a deletion.

    Attributes:
        grace_seconds: None for the kind's own.
        propagation: "Orphan", "Background", "Foreground"; "" leaves it to the object's finalizers.
        uid: the deletion fails for an object with another uid.
        resource_version: the deletion fails for an object with another version.
        dry_run: decide, but change nothing.
        user: the sender, as in ``userInfo``.
        warnings: those of admission are added here.
        sent: DeleteOptions, as webhooks see them.
    """

    grace_seconds: int | None = None
    propagation: str = ""
    uid: str = ""
    resource_version: str = ""
    dry_run: bool = False
    user: Obj = field(default_factory=lambda: CONTROLLERS)
    warnings: list[str] = field(default_factory=list)
    sent: Obj = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Deletion:
    """The result: an object to write first (or None), and whether the object is then removed."""

    marked: Obj | None
    removed: bool


def _collector_finalizers(finalizers: list[str], propagation: str) -> list[str]:
    """The finalizers with those that instruct the garbage collector about dependents."""
    orphans = propagation == "Orphan" or (not propagation and ORPHAN in finalizers)
    foreground = propagation == "Foreground" or (not propagation and FOREGROUND in finalizers and not orphans)
    kept = [one for one in finalizers if one not in (ORPHAN, FOREGROUND)]
    return kept + [ORPHAN] * orphans + [FOREGROUND] * foreground


def deletion(old: Obj, kind: Kind, options: DeleteOptions, now: dt.datetime) -> Deletion:
    """The effect of a DELETE; ``old`` is not changed."""
    meta = old["metadata"]
    marked = copied(old)
    metadata = marked["metadata"]
    graceful, seconds = False, 0
    if meta.get("deletionTimestamp"):
        current = meta.get("deletionGracePeriodSeconds") or 0
        if current:
            if options.grace_seconds is None or max(options.grace_seconds, 0) >= current:
                return Deletion(None, removed=False)  # an earlier deletion ends sooner
            seconds = max(options.grace_seconds, 0)
            asked = dt.datetime.fromisoformat(meta["deletionTimestamp"]) - dt.timedelta(seconds=current)
            metadata["deletionTimestamp"] = timestamp_of(asked + dt.timedelta(seconds=seconds))
            metadata["deletionGracePeriodSeconds"] = seconds
            graceful = True
    else:
        granted = kind.grace_seconds(old, options.grace_seconds)
        if granted is not None:
            graceful, seconds = True, granted
            metadata["deletionTimestamp"] = timestamp_of(now + dt.timedelta(seconds=seconds))
            metadata["deletionGracePeriodSeconds"] = seconds
            _count_generation(marked)
    before = list(meta.get("finalizers") or [])
    if not meta.get("deletionTimestamp"):
        before += [one for one in kind.deletion_finalizers(old) if one not in before]
    finalizers = _collector_finalizers(before, options.propagation)
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)
    if graceful:
        return Deletion(marked, removed=not finalizers and seconds == 0)
    if not finalizers:
        return Deletion(None, removed=True)
    if not metadata.get("deletionTimestamp"):
        metadata["deletionTimestamp"] = timestamp_of(now)
        _count_generation(marked)
    metadata["deletionGracePeriodSeconds"] = 0
    return Deletion(marked, removed=False)


def _count_generation(obj: Obj) -> None:
    if obj["metadata"].get("generation"):
        obj["metadata"]["generation"] += 1


def ends_with_update(new: Obj, old: Obj) -> bool:
    """Whether an update removes the last finalizers of an object that is being deleted."""
    return (
        not new["metadata"].get("finalizers")
        and bool(new["metadata"].get("deletionTimestamp"))
        and old["metadata"].get("deletionGracePeriodSeconds") == 0
    )
