"""LiveView is the content of a running operator's live page: nodes, queue, policies, moves, records."""

from pydantic import Field

from plimsoll.answers.answer import Answer, AnswerPart


class LiveNode(AnswerPart):
    """One node; shares are of its allocatable amounts."""

    node: str = Field(description="Name of the node.")
    pods: int = Field(ge=0, description="Pods that are placed or assumed on the node.")
    cpu_percent: int = Field(ge=0, description="Percentage of cpu that pods on the node request.")
    memory_percent: int = Field(ge=0, description="Percentage of memory that pods on the node request.")
    is_open: bool = Field(description="Whether the node is ready and not cordoned.")
    zone: str = Field(default="", description="Zone of the node, by label topology.kubernetes.io/zone.")
    taints: tuple[str, ...] = Field(default=(), description="Taints that keep pods out, as key=value:Effect.")


class LiveCondition(AnswerPart):
    """A condition of a policy."""

    type: str = Field(description="Type of the condition, such as Ready.")
    status: str = Field(description="True, False or Unknown.")
    reason: str = Field(description="Reason of the condition, for programs.")
    message: str = Field(description="Sentence that explains the condition.")


class LiveRefusal(AnswerPart):
    """Candidates of the last run that stay for one reason."""

    reason: str = Field(description="Reason of the refusals, for programs.")
    count: int = Field(ge=0, description="Number of pods that stay for this reason.")
    message: str = Field(description="Sentence that explains the reason for one of them.")


class LivePolicy(AnswerPart):
    """A policy: what it does, what it has done, and its conditions."""

    policy: str = Field(description="Name of the SchedulingPolicy.")
    mode: str = Field(default="", description="Mode of the policy's rebalancing; empty without rebalancing.")
    scheduler: str = Field(default="", description="schedulerName that the policy serves; empty if none.")
    is_suspended: bool = Field(default=False, description="Whether spec.suspend is true.")
    last_run: str = Field(default="", description="Start of the last run, RFC 3339; empty before the first.")
    last_result: str = Field(default="", description="Sentence about the result of the last run.")
    next_run: str = Field(default="", description="Time of the next run, RFC 3339; empty if it is not known.")
    moved: int = Field(default=0, ge=0, description="Number of kept records of moves that ended well.")
    failed: int = Field(default=0, ge=0, description="Number of kept records of failed or returned moves.")
    refused: tuple[LiveRefusal, ...] = Field(
        default=(), description="Reasons why candidates of the last run stay."
    )
    conditions: tuple[LiveCondition, ...] = Field(description="Conditions in the status of the policy.")


class LiveMaintenance(AnswerPart):
    """A NodeMaintenance: how far it has come."""

    maintenance: str = Field(description="Name of the NodeMaintenance.")
    phase: str = Field(default="", description="Phase, such as Draining; empty before the first look at it.")
    drained: int = Field(default=0, ge=0, description="Number of nodes that are drained.")
    total: int = Field(default=0, ge=0, description="Number of nodes that are to be drained.")
    expected_end: str = Field(
        default="", description="Time when the last node will be drained, RFC 3339; empty if it is not known."
    )
    message: str = Field(default="", description="Sentence on what is done and what is missing.")


class LiveRecord(AnswerPart):
    """A move as recorded."""

    record: str = Field(description="The Eviction record, as namespace/name.")
    pod: str = Field(description="The pod that is moved, as namespace/name.")
    source_node: str = Field(description="Node that the pod was on.")
    target_node: str = Field(description="Node that is expected for the replacement.")
    policy: str = Field(description="SchedulingPolicy that decided the move.")
    strategy: str = Field(description="Strategy that proposed the move.")
    phase: str = Field(description="Phase of the record, such as Evicting.")
    message: str = Field(description="Sentence that explains the phase.")
    why: str = Field(default="", description="Sentence that says why the pod is moved.")
    landed_node: str = Field(default="", description="Node of the replacement; empty until it has one.")
    time: str = Field(default="", description="Time when the record came to its phase, RFC 3339.")


class LivePod(AnswerPart):
    """A pod in the scheduling queue."""

    pod: str = Field(description="The pod, as namespace/name.")
    queue: str = Field(description="active, backoff, unschedulable, gated or in flight.")
    attempts: int = Field(description="Number of attempts to schedule the pod.")
    waited_seconds: int = Field(description="Seconds since the pod was queued first.")
    rejected_by: tuple[str, ...] = Field(description="Plugins that rejected the last attempt.")


class LiveSlot(AnswerPart):
    """A quarter of an hour in which moves ended."""

    start: str = Field(description="Beginning of the quarter of an hour, RFC 3339.")
    settled: int = Field(ge=0, description="Number of moves that ended well.")
    failed: int = Field(ge=0, description="Number of moves that failed or returned.")


class LiveChange(AnswerPart):
    """A change of a policy's state."""

    time: str = Field(description="Time of the change, RFC 3339.")
    policy: str = Field(description="Name of the SchedulingPolicy.")
    what: str = Field(description="What the state is since then, such as Paused, Not Ready or Created.")
    message: str = Field(description="Sentence that explains the state; empty for a new policy.")


class LiveRackGroup(AnswerPart):
    """A group with members in one rack."""

    group: str = Field(description="The group in words, such as PodGroup shop/train.")
    members: int = Field(ge=0, description="Members of the group there.")
    nodes: int = Field(ge=0, description="Nodes there on which no other group has more members.")


class LiveRack(AnswerPart):
    """The nodes with one value of a topology label."""

    domain: str = Field(description="Value of the label; empty for nodes without the label.")
    nodes: int = Field(ge=0, description="Number of its nodes.")
    without: int = Field(ge=0, description="Nodes there without a member of any group.")
    groups: tuple[LiveRackGroup, ...] = Field(description="Groups with members there, most members first.")


class LiveView(Answer):
    """The operator's present state, or changes of it."""

    standing: str = Field(description="Whether the process that answers leads, in words.")
    time: str = Field(default="", description="When the view was taken, RFC 3339; ages are relative to it.")
    node_count: int = Field(description="Number of nodes in the cluster.")
    pod_count: int = Field(description="All pods with a node.")
    is_whole: bool = Field(default=False, description="Whether all nodes are in this view.")
    nodes: tuple[LiveNode, ...] = Field(
        description="All nodes, or those that changed since the last view that the caller received."
    )
    gone: tuple[str, ...] = Field(
        description="Nodes that are gone since the last view that the caller received."
    )
    depths: dict[str, int] = Field(description="Pods by queue.")
    queue: tuple[LivePod, ...] = Field(description="Pods that wait, at most a hundred.")
    reasons: dict[str, int] = Field(
        default={}, description="Waiting pods by the plugins that rejected them, the most frequent first."
    )
    policies: tuple[LivePolicy, ...] = Field(description="SchedulingPolicies of the cluster, all of them.")
    maintenances: tuple[LiveMaintenance, ...] = Field(
        default=(), description="NodeMaintenances of the cluster, all of them."
    )
    rack_label: str = Field(
        default="", description="The topology label that most groups name; empty if none names any."
    )
    racks: tuple[LiveRack, ...] = Field(
        default=(), description="Domains of that label that have members of groups, at most a hundred."
    )
    rack_count: int = Field(default=0, ge=0, description="Domains of that label, with and without groups.")
    moves: tuple[LiveRecord, ...] = Field(description="Moves that are under way, at most a hundred.")
    records: tuple[LiveRecord, ...] = Field(description="Moves that ended last, at most fifty.")
    slots: tuple[LiveSlot, ...] = Field(
        default=(), description="The last six hours, the latest quarter of an hour last, by kept records."
    )
    changes: tuple[LiveChange, ...] = Field(
        default=(), description="Changes of policies in the last six hours, the latest first, at most fifty."
    )
