"""Finds the trees that CompositePodGroups and their PodGroups form.

Each group names its parent, so the objects may form no tree: a parent may be missing, a group may be its own
ancestor, and there may be more levels than servers admit for the templates of a Workload.
Source: KEP-6012; kube-scheduler v1.37 refuses such groups likewise.
"""

from collections.abc import Callable, Mapping
from copy import copy
from itertools import islice
from typing import NamedTuple, Self

from plimsoll.model.kinds.composite_pod_group import (
    COMPOSITES,
    CompositePodGroup,
    composite_key,
    is_composite,
)
from plimsoll.model.kinds.objects import ClusterObjects
from plimsoll.model.kinds.owned_group import title_of
from plimsoll.model.kinds.pod_group import PodGroup

MOST_LEVELS = 4
"""Maximum number of levels of a tree, with that of its PodGroups."""


class Ancestry(NamedTuple):
    """The composite groups above a group, from its parent to the root.

    Attributes:
        path: The composite groups, as far as they are known.
        fault: Why they form no tree, "" if they do.
        is_invalid: Whether only another object mends that.
    """

    path: tuple[CompositePodGroup, ...]
    fault: str = ""
    is_invalid: bool = False


class GroupTrees:
    """The trees of some objects; made again when one of them has changed.

    Args:
        groups: The PodGroups by key.
        composites: The CompositePodGroups by key.
    """

    def __init__(self, groups: Mapping[str, PodGroup], composites: Mapping[str, CompositePodGroup]) -> None:
        self._composites = dict(composites)
        children: dict[str, list[PodGroup | CompositePodGroup]] = {}
        for group in groups.values():
            if group.spec.parent:
                children.setdefault(parent_of(group), []).append(group)
        for composite in composites.values():
            if composite.parent:
                children.setdefault(composite.parent, []).append(composite)
        #: by the key of the parent, the oldest first, as kube-scheduler has them
        self._children = {
            key: tuple(each.group_key for each in sorted(found, key=_age)) for key, found in children.items()
        }

    def above(self, group: PodGroup) -> Ancestry:
        """The composite groups above a group; none for one without a parent."""
        path: list[CompositePodGroup] = []
        key = parent_of(group) if group.spec.parent else ""
        while key:
            found = self._composites.get(key)
            if found is None:
                why = f"waiting for {title_of(key)}: there is no such {COMPOSITES} that the operator may read"
                return Ancestry(tuple(path), why)
            if any(each.group_key == key for each in path):
                return Ancestry(tuple(path), f"{title_of(key)} is above itself", is_invalid=True)
            path.append(found)
            key = found.parent
        if len(path) >= MOST_LEVELS:
            root = title_of(path[-1].group_key)
            why = f"{root} has more than {MOST_LEVELS} levels of groups"
            return Ancestry(tuple(path), why, is_invalid=True)
        return Ancestry(tuple(path))

    def binding(self, group: PodGroup) -> str:
        """The key of the highest group above this one whose groups need one another, "" for none.

        One that is not known counts as such a group: how many of its groups it needs is not known either.
        """
        path = self.above(group).path
        if len(path) < MOST_LEVELS:
            top = path[-1].parent if path else parent_of(group)
            if top and top not in self._composites:
                return top
        return next((each.group_key for each in reversed(path) if each.binds), "")

    def children(self, key: str) -> tuple[str, ...]:
        """The keys of the groups of a composite group, the oldest first."""
        return self._children.get(key, ())

    def composite(self, key: str) -> CompositePodGroup:
        """The composite group with this key."""
        return self._composites[key]

    def leaves(self, key: str) -> list[str]:
        """The keys of all PodGroups below a composite group."""
        found, left, seen = list[str](), [key], set[str]()
        while left:
            each = left.pop(0)
            if not is_composite(each):
                found.append(each)
            elif each not in seen:  # a group may be above itself
                seen.add(each)
                left += self.children(each)
        return found

    def is_met(self, key: str, is_met: Callable[[str], bool]) -> bool:
        """Whether enough groups of a composite group in a valid tree meet a condition on PodGroups by key."""
        if not is_composite(key):
            return is_met(key)
        least = self._composites[key].least
        met = (each for each in self.children(key) if self.is_met(each, is_met))
        return sum(1 for _ in islice(met, least)) == least


class KeptTrees:
    """A ledger: the trees of a cluster's groups, made again when groups have changed."""

    def __init__(self) -> None:
        self._state = (-1, 0, 0)
        self._trees = GroupTrees({}, {})

    def copied(self) -> Self:
        """An independent copy."""
        return copy(self)

    def of(self, objects: ClusterObjects, groups: Mapping[str, PodGroup]) -> GroupTrees:
        """The trees of these groups and the composite groups among these objects, always of the same ones."""
        state = objects.budget_version, len(groups), len(objects.composites)
        if state != self._state:
            self._state, self._trees = state, GroupTrees(groups, objects.composites)
        return self._trees


def trees_of(objects: ClusterObjects) -> GroupTrees:
    """The trees of a cluster's groups; not made for each question, since a tenant may have thousands."""
    return objects.ledger(KeptTrees).of(objects, objects.pod_groups)


def parent_of(group: PodGroup) -> str:
    """The key of the composite group that a group with a parent names."""
    return composite_key(group.namespace, group.spec.parent)


def _age(group: PodGroup | CompositePodGroup) -> tuple[float, str]:
    return group.metadata.created_s, group.name
