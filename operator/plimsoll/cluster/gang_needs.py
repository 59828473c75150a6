"""How many members of each gang must yet get a node together, for strategies that make room for them."""

from plimsoll.cluster.cache import Cache
from plimsoll.cluster.pod_groups import Groups
from plimsoll.scheduling.gangs.attempt import placed_members, shortage


def gang_needs(groups: Groups, cache: Cache) -> dict[str, int]:
    """Members that must get a node together by PodGroup, 0 when it has started.

    Groups that cannot start for another reason than room for their members are missing.
    """
    needs = {}
    for group in groups:
        if group.object is None or group.obstacle() or shortage(group, cache.cluster):
            continue
        needs[group.key] = max(group.min_member - len(placed_members(group, cache)), 0)
    return needs
