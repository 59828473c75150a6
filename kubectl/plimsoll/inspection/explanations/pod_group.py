"""Explains the PodGroup of a pending pod: its members, the number that fit together, and its obstacle."""

from pydantic import Field

from plimsoll.answers.answer import AnswerPart
from plimsoll.cluster.pod_groups import placed_members, shortage
from plimsoll.engine.gangs.placement import place_together
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import PodInfo
from plimsoll.inspection.state import ClusterState


class GroupExplanation(AnswerPart):
    """A PodGroup, and whether enough members fit together now."""

    name: str = Field(
        description="The PodGroup, as namespace/name; one of the core API after scheduling.k8s.io/."
    )
    min_member: int = Field(description="Members that must be placed together.")
    present: int = Field(description="Members that count.")
    placed: int = Field(description="Members with a node.")
    fitting: int = Field(description="Members without a node that fit together now.")
    obstacle: str = Field(description="Why the group cannot start now; empty when it can.")


def explain_group(state: ClusterState, pod: PodInfo, scheduler: ProfileScheduler) -> GroupExplanation | None:
    """Explain the pod's PodGroup; None without one."""
    group = state.objects.groups.of(pod.pod)
    if group is None:
        return None
    placed = placed_members(group, state.objects.cache)
    obstacle = group.obstacle() or shortage(group, state.cluster)
    fitting = 0
    if not obstacle:
        members = [
            (state.objects.cache.info(each), state.schedulers.get(each.spec.scheduler_name, scheduler))
            for each in group.waiting()
        ]
        needed = max(group.min_member - len(placed), 0)
        found = place_together(
            members,
            state.cluster,
            needed,
            placed=[each.uid for each in placed],
            within=group.topology_key,
        )
        fitting = len(found.placements)
        obstacle = "" if found.is_feasible else found.message(len(placed))
    return GroupExplanation(
        name=group.key,
        min_member=group.min_member,
        present=group.present,
        placed=len(placed),
        fitting=fitting,
        obstacle=obstacle,
    )
