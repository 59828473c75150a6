"""Explains a node: its utilization, the pods that could leave it, and obstacles to emptying it."""

from pydantic import Field

from plimsoll.answers.answer import Answer, AnswerPart
from plimsoll.answers.operator_memory import NodeMemory
from plimsoll.framework import PluginError
from plimsoll.inspection.explanations.node_pods import LeavingPod, leaving_pods
from plimsoll.inspection.state import ClusterState
from plimsoll.inspection.unknown_objects import UnknownObjectError
from plimsoll.model.columns.cluster import ABSENT_RESOURCES
from plimsoll.model.counted import counted
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.model.quantity import scaled
from plimsoll.planning.moves import EvictionPlan
from plimsoll.planning.planners import make_plan
from plimsoll.toolkit.descheduling.disruption_signals import removal
from plimsoll.toolkit.descheduling.starting_nodes import why_not_emptied

#: Facts that only the operator's memory has.
MEMORY_UNKNOWN = (
    "pods that are assumed there and not yet bound, and room that is reserved: only the operator that leads"
    " knows them; --operator asks it"
)

#: Conditions that indicate a problem when True.
PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")


class ResourceUse(AnswerPart):
    """The use of one resource."""

    resource: str = Field(description="Name of the resource.")
    allocatable: int = Field(
        description="Amount that pods can use, in milli for cpu, bytes for memory and storage, units of "
        "the rest."
    )
    requested: int = Field(description="Amount that the pods on the node request.")
    requested_percent: float = Field(
        description="Requested amount in percent of the allocatable; 0 without any."
    )
    used: int | None = Field(description="Amount used, as measured by metrics.k8s.io; null where it is not.")
    used_percent: float | None = Field(
        description="Measured use in percent of the allocatable; null where it is not measured."
    )


class NodePolicyView(AnswerPart):
    """The effect of a policy's run on the node now."""

    policy: str = Field(description="Name of the SchedulingPolicy.")
    mode: str = Field(description="DryRun, Approve or Enforce.")
    classes: dict[str, str] = Field(
        description="Underutilized, Overutilized or Appropriate, by the strategy that sorts nodes."
    )
    leave: list[str] = Field(description="Pods that it would move off the node.")
    arrive: list[str] = Field(description="Pods that it would move to the node.")
    stay: dict[str, int] = Field(description="Refused moves of the node's pods, by reason.")
    remarks: list[str] = Field(
        description="What strategies that find the node over-used have to say, such as why they move nothing."
    )
    problem: str = Field(description="Why there is no plan; empty when there is one.")


class NodeExplanation(Answer):
    """The utilisation of a node, and whether it can be emptied."""

    name: str = Field(description="Name of the node.")
    is_ready: bool = Field(description="Whether its condition Ready is True.")
    is_cordoned: bool = Field(description="Whether spec.unschedulable is set.")
    taints: list[str] = Field(description="Taints of the node, as key=value:effect.")
    pressure: list[str] = Field(description="Conditions such as MemoryPressure that are True.")
    summary: list[str] = Field(description="The answer in a few sentences.")
    use: list[ResourceUse] = Field(description="Requested and measured use of each resource.")
    policies: list[NodePolicyView] = Field(description="Every policy that rebalances.")
    pods: list[LeavingPod] = Field(
        description="Pods on the node, and whether each could leave if the node were drained."
    )
    can_drain: bool = Field(
        description="Whether kubectl drain --ignore-daemonsets would empty it now; pods of outcome NoPlace "
        "do not stop it, but would be pending."
    )
    operator: NodeMemory | None = Field(
        default=None, description="What the operator remembers; null where it was not asked."
    )
    unknown: list[str] = Field(description="What this answer cannot know, and why.")


def explain_node(state: ClusterState, name: str) -> NodeExplanation:
    """Explain the node with this name.

    Raises:
        UnknownObjectError: There is no such node.
    """
    row = state.cluster.rows.get(name)
    if row is None:
        raise UnknownObjectError("node", name, list(state.cluster.rows))
    node = state.cluster.nodes[row]
    pods = leaving_pods(state, name)
    found = NodeExplanation(
        name=name,
        is_ready=node.is_ready,
        is_cordoned=node.spec.unschedulable,
        taints=[_taint(each.key, each.value, each.effect) for each in node.spec.taints],
        pressure=[
            each.type for each in node.status.conditions if each.type in PRESSURES and each.status == "True"
        ],
        summary=[],
        use=_use(state, node, row),
        policies=[_view(state, policy, name) for policy in state.working],
        pods=pods,
        can_drain=not any(each.outcome == "Blocked" for each in pods),
        unknown=_unknown(state, name),
    )
    return found.model_copy(update={"summary": [*_summary(found), *_signals(state, node)]})


def _taint(key: str, value: str, effect: str) -> str:
    return f"{key}={value}:{effect}" if value else f"{key}:{effect}"


def _use(state: ClusterState, node: Node, row: int) -> list[ResourceUse]:
    cluster = state.cluster
    measured = next((each.usage for each in state.content.usage.nodes if each.name == node.name), None)
    found = []
    for axis, resource in enumerate(cluster.resources):
        allocatable, requested = int(cluster.allocatable[row, axis]), int(cluster.requested[row, axis])
        if resource == ABSENT_RESOURCES or (not allocatable and not requested):
            continue
        used = None
        if measured is not None and resource in measured:
            used = scaled(measured[resource], 10**6 if resource == "cpu" else 10**9)
        found.append(
            ResourceUse(
                resource=resource,
                allocatable=allocatable,
                requested=requested,
                requested_percent=_percent(requested, allocatable),
                used=used,
                used_percent=None if used is None else _percent(used, allocatable),
            )
        )
    return found


def _percent(amount: int, total: int) -> float:
    return round(100 * amount / total, 1) if total else 0.0


def _view(state: ClusterState, policy: str, node: str) -> NodePolicyView:
    spec = state.working[policy].spec.rebalancing
    problem = ""
    plan = EvictionPlan((), ())
    try:
        plan = make_plan(*state.run_input(policy))
    except PluginError as exc:
        problem = str(exc)
    stay: dict[str, int] = {}
    for refused in plan.refused:
        if _node_of(state, refused.pod) == node:
            stay[refused.refusal.reason] = stay.get(refused.refusal.reason, 0) + 1
    return NodePolicyView(
        policy=policy,
        mode="" if spec is None else spec.mode.value,
        classes={
            strategy: "Underutilized"
            if node in found.underutilized
            else "Overutilized"
            if node in found.overutilized
            else "Appropriate"
            for strategy, found in plan.classes
        },
        leave=[each.pod.key for each in plan.moves if each.source == node],
        arrive=[each.pod.key for each in plan.moves if each.target == node and each.source != node],
        stay=stay,
        remarks=[
            f"{strategy}: {remark}"
            for strategy, remark in plan.remarks
            if any(name == strategy and node in found.overutilized for name, found in plan.classes)
        ],
        problem=problem,
    )


def _node_of(state: ClusterState, pod: PodInfo) -> str:
    row = state.cluster.row_of_pod(pod.uid)
    return "" if row is None else state.cluster.nodes[row].name


def _unknown(state: ClusterState, name: str) -> list[str]:
    usage = state.content.usage
    memory = [MEMORY_UNKNOWN]
    if any(each.name == name for each in usage.nodes):
        return memory
    return [*memory, f"actual usage: {usage.problem or 'metrics.k8s.io has no reading of the node'}"]


def _signals(state: ClusterState, node: Node) -> list[str]:
    """What others have written on the node, and what Plimsoll does at it."""
    pods = state.cluster.pods_on(state.cluster.rows[node.name])
    marks = removal(node), why_not_emptied(node, pods, state.time)
    return [
        f"{said}{mark}"
        for said, mark in zip(("no pod is moved to it: it ", "it is not emptied: "), marks, strict=True)
        if mark
    ]


def _summary(found: NodeExplanation) -> list[str]:
    states = ["Ready" if found.is_ready else "not Ready"]
    states += ["cordoned"] if found.is_cordoned else []
    states += [f"under {each}" for each in found.pressure]
    said: list[str] = []
    by_resource = {each.resource: each for each in found.use}
    shares = [
        f"{by_resource[name].requested_percent:g}% of its {name}"
        for name in ("cpu", "memory", "pods")
        if name in by_resource
    ]
    total = len(found.pods)
    blocked = [each for each in found.pods if each.outcome == "Blocked"]
    homeless = [each for each in found.pods if each.outcome == "NoPlace"]
    if blocked:
        said.append(
            f"a drain would stop at {len(blocked)} of {counted(total, 'pod')}, such as"
            f" {_with_reason(blocked[0])}"
        )
    else:
        said.append("a drain would empty it")
    if homeless:
        said.append(
            f"after a drain {len(homeless)} of {counted(total, 'pod')} would have no place, such as "
            f"{_with_reason(homeless[0])}"
        )
    return [*said, f"{', '.join(states)}; requested: {', '.join(shares)}"]


def _with_reason(pod: LeavingPod) -> str:
    return f"{pod.pod}: {pod.text}"
