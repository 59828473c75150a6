"""Explains a PodGroup: its members and their nodes, the number that fit together now, and its obstacle."""

from collections import Counter
from collections.abc import Mapping
from functools import partial

from pydantic import Field

from plimsoll.answers.answer import Answer, AnswerPart
from plimsoll.cluster.group_units import unit_of
from plimsoll.cluster.pod_groups import Group, placed_members, shortage
from plimsoll.engine.gangs.composite import place_unit
from plimsoll.engine.gangs.joint_decision import GangDecision, Placement
from plimsoll.engine.gangs.ranks import rank_of
from plimsoll.engine.gangs.topology_domains import never_fits
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import Pod, PodInfo
from plimsoll.inspection.queue_shares import QueueExplanation, explain_queue, queue_sentences
from plimsoll.inspection.state import ClusterState
from plimsoll.model.counted import agreeing, counted
from plimsoll.model.kinds.owned_group import title_of
from plimsoll.model.kinds.pod_group import CORE
from plimsoll.model.names import PodUid

#: The node of a member without one.
NONE = ""


class GroupExplanation(AnswerPart):
    """A PodGroup, and whether enough members fit together now."""

    name: str = Field(
        description="The PodGroup, as namespace/name; one of the core API after scheduling.k8s.io/, one"
        " that is derived from an owner after its resource, such as jobs.batch/."
    )
    min_member: int = Field(description="Members that must be placed together.")
    present: int = Field(description="Members that count.")
    placed: int = Field(description="Members with a node.")
    fitting: int = Field(description="Members without a node that fit together now.")
    obstacle: str = Field(description="Why the group cannot start now; empty when it can.")
    composites: list[str] = Field(
        description="The CompositePodGroups whose groups start with it, from its parent to the root."
    )


class DomainMembers(AnswerPart):
    """Members in one topology domain."""

    label: str = Field(description="The node label.")
    value: str = Field(description="Value of the label; empty for nodes without the label.")
    members: int = Field(description="Members with a node there.")
    would: int = Field(description="Members without a node that would get one there now.")


class MemberPlace(AnswerPart):
    """One member."""

    pod: str = Field(description="Name of the pod.")
    phase: str = Field(description="Phase of the pod, from status.phase.")
    node: str = Field(description="Node of the member; empty without one.")
    would: str = Field(description="The node that it would get now; empty if it has one or gets none.")


class PodGroupExplanation(Answer):
    """Why a PodGroup waits, or where it runs."""

    namespace: str = Field(description="Namespace of the PodGroup.")
    name: str = Field(description="Name of the PodGroup.")
    api_group: str = Field(description="API group of the PodGroup: plimsoll.dev or scheduling.k8s.io.")
    scheduler: str = Field(description="Scheduler of its pods; empty without any.")
    policy: str = Field(description="The SchedulingPolicy that serves that name; empty without one.")
    required_topology: str = Field(description="Node label whose value all members share; empty for none.")
    preferred_topology: list[str] = Field(
        description="Node labels whose values they should share, the narrowest first."
    )
    group: GroupExplanation = Field(description="How many members it needs and has.")
    queue: QueueExplanation | None = Field(
        description="The queue of fairShare of its first member; null without one."
    )
    never: str = Field(description="Why it cannot start on the present nodes even if they were empty.")
    summary: list[str] = Field(description="The answer in a few sentences.")
    domains: list[DomainMembers] = Field(description="Where members are, by each of these labels.")
    members: list[MemberPlace] = Field(description="The members by rank.")
    unknown: list[str] = Field(description="What this answer cannot know, and why.")


def explain_group(state: ClusterState, pod: PodInfo, scheduler: ProfileScheduler) -> GroupExplanation | None:
    """Explain the pod's PodGroup; None without one."""
    group = state.groups.of(pod.pod)
    return None if group is None else _explained(state, group, scheduler)[0]


def explain_pod_group(state: ClusterState, namespace: str, name: str) -> PodGroupExplanation | None:
    """Explain the PodGroup with this name, of the core API if it has one; None without any."""
    key = f"{namespace}/{name}"
    named = [state.groups.find(each) for each in (f"{CORE}/{key}", key)]
    known = [each for each in named if each is not None]
    group = next((each for each in known if each.object is not None), next(iter(known), None))
    if group is None:
        return None
    members = sorted(group.members.values(), key=rank_of)
    wanted = members[0].spec.scheduler_name if members else ""
    scheduler = state.deciding(wanted)
    counts, decision = _explained(state, group, scheduler)
    mine = [] if decision is None else [each for each in decision.placements if _is_of(state, each, group)]
    would = {each.decision.pod.uid: each.node for each in mine}
    near = group.near(scheduler.profile.groups)
    waiting = [state.objects.cache.info(each) for each in group.waiting() if _node_of(state, each) == NONE]
    needed = max(group.min_member - counts.placed, 0)
    never = never_fits(waiting, state.cluster, needed, group.topology_key) if waiting and needed else ""
    found = PodGroupExplanation(
        namespace=namespace,
        name=name,
        api_group=CORE if group.key.startswith(CORE) else "plimsoll.dev",
        scheduler=wanted,
        policy="" if state.scheduler(wanted) is None else scheduler.profile.policy,
        required_topology=group.topology_key,
        preferred_topology=list(near),
        group=counts,
        queue=explain_queue(state, state.objects.cache.info(members[0]), scheduler) if members else None,
        never=never,
        summary=[],
        domains=_domains(state, group, [each for each in (group.topology_key, *near) if each], would),
        members=[
            MemberPlace(
                pod=each.name,
                phase=each.status.phase or "Pending",
                node=_node_of(state, each),
                would=would.get(PodUid(each.uid), NONE),
            )
            for each in members
        ],
        unknown=[f"{plural}: {why}" for plural, why in state.content.missing.items()],
    )
    told = [] if found.queue is None else queue_sentences(found.queue)
    return found.model_copy(update={"summary": [*_summary(found, also=len(known) > 1), *told]})


def group_sentence(group: GroupExplanation) -> str:
    """How many members a group has and needs, for the answer about one of them."""
    verb = agreeing(group.placed, "has a node", "have a node")
    part = f", part of {group.composites[-1]}," if group.composites else ","
    return (
        f"it is one of {counted(group.present, 'member')} of {title_of(group.name)}{part} which needs"
        f" {group.min_member}; {group.placed} {verb}"
    )


def _explained(
    state: ClusterState, group: Group, scheduler: ProfileScheduler
) -> tuple[GroupExplanation, GangDecision | None]:
    """The counts, and what the scheduler would do now; None if it would not try."""
    placed = placed_members(group, state.objects.cache)
    obstacle = group.obstacle() or shortage(group, state.cluster)
    decision = None
    parts = state.groups.parts(group.key)
    waiting = [each for part in parts for each in part.waiting() if _node_of(state, each) == NONE]
    if not obstacle and waiting:
        members = [
            (state.objects.cache.info(each), state.schedulers.get(each.spec.scheduler_name, scheduler))
            for each in waiting
        ]
        unit = unit_of(state.groups, group, members, partial(placed_members, cache=state.objects.cache))
        decision = place_unit(unit, state.cluster)
        obstacle = "" if decision.is_feasible else decision.message(len(placed))
    counts = GroupExplanation(
        name=group.key,
        min_member=group.min_member,
        present=group.present,
        placed=len(placed),
        fitting=0 if decision is None else sum(_is_of(state, each, group) for each in decision.placements),
        obstacle=obstacle,
        composites=[each.title for each in state.groups.above(group.key)],
    )
    return counts, decision if decision is not None and decision.is_feasible else None


def _is_of(state: ClusterState, placement: Placement, group: Group) -> bool:
    """Whether a member is of this group, and not of another one that starts with it."""
    return state.groups.key_of(placement.decision.pod.pod) == group.key


def _node_of(state: ClusterState, pod: Pod) -> str:
    return pod.node_name or state.objects.cache.node_of(pod.uid)


def _domains(
    state: ClusterState, group: Group, labels: list[str], would: Mapping[PodUid, str]
) -> list[DomainMembers]:
    """Where members are, by label."""
    found = []
    for label in labels:
        value_of = {node.name: node.labels.get(label, "") for node in state.cluster.nodes}
        there = Counter(
            value_of.get(node, "") for each in group.counting() if (node := _node_of(state, each))
        )
        then = Counter(value_of.get(node, "") for node in would.values())
        found += [
            DomainMembers(label=label, value=value, members=there[value], would=then[value])
            for value in sorted({*there, *then}, key=lambda each: (-there[each] - then[each], each))
        ]
    return found


def _summary(found: PodGroupExplanation, *, also: bool) -> list[str]:
    group, said = found.group, list[str]()
    if group.composites:
        said.append(f"it starts with the other groups of {group.composites[-1]}")
    if also:
        said.append(f"two PodGroups have this name; this is the one of {found.api_group}")
    if not found.policy and found.scheduler:
        said.append(f'no SchedulingPolicy serves schedulerName "{found.scheduler}"')
    waiting = group.present - group.placed
    if found.never:
        said.append(f"it cannot start on the present nodes: {found.never}")
    elif group.obstacle:
        said.append(group.obstacle)
    elif not waiting:
        said.append(f"all of its {counted(group.present, 'member')} have a node")
    elif group.placed >= group.min_member:
        said.append(f"it has started, and {counted(waiting, 'member')} more may join it")
    else:
        said.append(f"it can start now: {group.fitting} of {counted(waiting, 'member')} fit together")
    narrowest = (found.preferred_topology or [found.required_topology])[0]
    places = [each for each in found.domains if each.label == narrowest and each.members + each.would]
    if narrowest and places:
        count = len({each.value for each in places})
        said.append(f"its members are, or would be, in {counted(count, 'domain')} of label {narrowest}")
    return said
