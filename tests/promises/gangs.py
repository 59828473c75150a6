"""GangPromise: members of a PodGroup are bound when the group can start, and it is whole at the end.

A bound pod cannot be unbound: a group that lost a member after its start, or whose bindings failed, keeps
the others. Those that are missing are to be bound as soon as there is room for them.

Where replicas share the work, the replica that holds a node may refuse a member whose siblings are being
bound: it alone knows what its own pods have taken. Such a binding has failed, though nothing went wrong. And
none answers for a node whose replica has died until its lease has been taken over; a replica that lives must
answer.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator

from promises.commits import Commit, Obj
from promises.election import LEASES
from promises.findings import Findings
from promises.pods import condition_of, group_of, is_leaving, is_over, node_of
from promises.view import GROUPS, View

#: The condition by which a replica asks the one that holds a node to bind a pod, and how that refuses.
REQUEST, REFUSED = "plimsoll.dev/BindingRequested", "NoRoom"

#: Seconds before the first binding of a group in which a member may have been refused.
ASKED_S = 5.0

#: Parts into which nodes are divided, the leases of these, and the seconds after which one has expired.
SHARES, SHARE_LEASE, LEASE_S = 6, "plimsoll-nodes-", 15.0


class GangPromise:
    """Follows PodGroups and their members."""

    def __init__(self, view: View, findings: Findings) -> None:
        self._view = view
        self._findings = findings
        self._partial_since: dict[tuple[str, str], float] = {}
        self._was_whole: set[tuple[str, str]] = set()
        self._refused_at: dict[tuple[str, str], float] = {}
        self._held_at: dict[str, float] = {}  #: when the holder of a share has written its lease

    def judge(self, commit: Commit) -> None:
        """A commit of any collection."""
        if commit.collection == LEASES:
            holder = (commit.obj.get("spec") or {}).get("holderIdentity")
            if holder and holder == commit.author.identity:
                self._held_at[commit.key[1]] = commit.at
        if commit.collection != "pods" or not group_of(commit.obj):
            return
        group = (commit.obj["metadata"]["namespace"], group_of(commit.obj))
        is_new = node_of(commit.obj) and not node_of(commit.before) and commit.type != "DELETED"
        if is_new and commit.author.name:
            self._bound(commit, group)
        is_refused = _is_refused(commit.obj) and not _is_refused(commit.before or {})
        if is_refused or self._asks_the_dead(commit):
            self._refused_at[group] = commit.at
        placed, wanted = len(self._placed(group)), self._least(group, commit.at)
        if placed >= wanted:
            self._was_whole.add(group)
        if 0 < placed < wanted:
            self._partial_since.setdefault(group, commit.at)
        else:
            self._partial_since.pop(group, None)

    def _asks_the_dead(self, commit: Commit) -> bool:
        """Whether a member asks for a node whose share no living replica holds."""
        asked = condition_of(commit.obj, REQUEST)
        if asked.get("status") != "True" or asked == condition_of(commit.before or {}, REQUEST):
            return False
        share = zlib.crc32(asked.get("message", "").encode()) % SHARES
        return commit.at - self._held_at.get(f"{SHARE_LEASE}{share}", -math.inf) >= LEASE_S

    def _bound(self, commit: Commit, group: tuple[str, str]) -> None:
        """As many members as must start together were there lately."""
        wanted, at = self._least(group, commit.at), commit.at
        there = sum(
            any(each is not None and _is_member(each, group) for each in self._view.recent("pods", key, at))
            for key in self._view.known("pods")
        )
        if there < wanted:
            name = commit.obj["metadata"]["name"]
            self._findings.violated(at, f"{name} was bound, {there} of {wanted} members of {group[1]} exist")

    def _least(self, group: tuple[str, str], at: float) -> int:
        """How many must start together, by the loosest version of late; 0 while the group is not there."""
        versions = [each for each in self._view.recent(GROUPS, group, at) if each is not None]
        return min((int(each["spec"].get("minMember") or 1) for each in versions), default=0)

    def _members(self, group: tuple[str, str]) -> list[Obj]:
        return [each for each in self._view.objects("pods") if _is_member(each, group)]

    def _placed(self, group: tuple[str, str]) -> list[Obj]:
        return [each for each in self._members(group) if node_of(each)]

    def unfinished(self, at: float, calm_since: float) -> Iterator[str]:
        """Groups of which some, but too few, have been bound since nothing goes wrong any more.

        Args:
            at: The time.
            calm_since: Since when nothing goes wrong.
        """
        for group, since in self._partial_since.items():
            is_refused = self._refused_at.get(group, -math.inf) >= since - ASKED_S
            if since > calm_since and group not in self._was_whole and not is_refused:
                placed, wanted = len(self._placed(group)), self._least(group, at)
                yield f"{placed} of {wanted} members of {group[1]} have a node since {since:.0f}"


def _is_member(pod: Obj, group: tuple[str, str]) -> bool:
    is_there = not is_over(pod) and not is_leaving(pod)
    return is_there and (pod["metadata"]["namespace"], group_of(pod)) == group


def _is_refused(pod: Obj) -> bool:
    """Whether the replica that holds a node has no room for the pod."""
    asked = condition_of(pod, REQUEST)
    return (asked.get("status"), asked.get("reason")) == ("False", REFUSED)
