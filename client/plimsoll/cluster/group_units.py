"""Makes what is placed together: a group with its waiting members, or the whole tree that it is part of."""

from collections.abc import Callable, Sequence

from plimsoll.cluster.pod_groups import Group, Groups
from plimsoll.engine.gangs.composite import Branch, Leaf, branch_of
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import Pod, PodInfo


def unit_of(
    groups: Groups,
    group: Group,
    members: Sequence[tuple[PodInfo, ProfileScheduler]],
    placed: Callable[[Group], Sequence[Pod]],
) -> Leaf | Branch:
    """The group, or the composite group at the root of its tree.

    Args:
        groups: All groups.
        group: A group without an obstacle.
        members: The members of the group, or of the groups of its tree, without a node.
        placed: Gives the members of a group that have one.
    """
    of_group = dict[str, list[tuple[PodInfo, ProfileScheduler]]]()
    for member in members:
        of_group.setdefault(groups.key_of(member[0].pod), []).append(member)

    def leaf(key: str) -> Leaf:
        found, waiting = groups.find(key), of_group.get(key, [])
        assert found is not None, "trees are made of these groups"
        near = found.near(waiting[0][1].profile.groups) if waiting else ()
        uids = tuple(pod.uid for pod in placed(found))
        return Leaf(key, found.min_member, tuple(waiting), uids, found.topology_key, near)

    above = groups.above(group.key)
    return branch_of(groups.trees, above[-1].key, leaf) if above else leaf(group.key)
