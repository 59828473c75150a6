"""GangPromise: members of a PodGroup are bound when the group can start, and it is whole at the end.

A bound pod cannot be unbound: a group that lost a member after its start, or whose bindings failed, keeps
the others. Those that are missing are to be bound as soon as there is room for them.
"""

from __future__ import annotations

from collections.abc import Iterator

from promises.commits import Commit, Obj
from promises.findings import Findings
from promises.pods import group_of, is_leaving, is_over, node_of
from promises.view import GROUPS, View


class GangPromise:
    """Follows PodGroups and their members."""

    def __init__(self, view: View, findings: Findings) -> None:
        self._view = view
        self._findings = findings
        self._partial_since: dict[tuple[str, str], float] = {}
        self._was_whole: set[tuple[str, str]] = set()

    def judge(self, commit: Commit) -> None:
        """A commit of any collection."""
        if commit.collection != "pods" or not group_of(commit.obj):
            return
        group = (commit.obj["metadata"]["namespace"], group_of(commit.obj))
        is_new = node_of(commit.obj) and not node_of(commit.before) and commit.type != "DELETED"
        if is_new and commit.author.name:
            self._bound(commit, group)
        placed, wanted = len(self._placed(group)), self._least(group, commit.at)
        if placed >= wanted:
            self._was_whole.add(group)
        if 0 < placed < wanted:
            self._partial_since.setdefault(group, commit.at)
        else:
            self._partial_since.pop(group, None)

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
            if since > calm_since and group not in self._was_whole:
                placed, wanted = len(self._placed(group)), self._least(group, at)
                yield f"{placed} of {wanted} members of {group[1]} have a node since {since:.0f}"


def _is_member(pod: Obj, group: tuple[str, str]) -> bool:
    is_there = not is_over(pod) and not is_leaving(pod)
    return is_there and (pod["metadata"]["namespace"], group_of(pod)) == group
