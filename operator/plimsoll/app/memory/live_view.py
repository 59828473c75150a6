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


class LiveCondition(AnswerPart):
    """A condition of a policy."""

    type: str = Field(description="Type of the condition, such as Ready.")
    status: str = Field(description="True, False or Unknown.")
    reason: str = Field(description="Reason of the condition, for programs.")
    message: str = Field(description="Sentence that explains the condition.")


class LivePolicy(AnswerPart):
    """A policy and its conditions."""

    policy: str = Field(description="Name of the SchedulingPolicy.")
    conditions: tuple[LiveCondition, ...] = Field(description="Conditions in the status of the policy.")


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


class LivePod(AnswerPart):
    """A pod in the scheduling queue."""

    pod: str = Field(description="The pod, as namespace/name.")
    queue: str = Field(description="active, backoff, unschedulable, gated or in flight.")
    attempts: int = Field(description="Number of attempts to schedule the pod.")
    waited_seconds: int = Field(description="Seconds since the pod was queued first.")
    rejected_by: tuple[str, ...] = Field(description="Plugins that rejected the last attempt.")


class LiveView(Answer):
    """The operator's present state, or changes of it."""

    standing: str = Field(description="Whether the process that answers leads, in words.")
    node_count: int = Field(description="Number of nodes in the cluster.")
    pod_count: int = Field(description="All pods with a node.")
    nodes: tuple[LiveNode, ...] = Field(description="Nodes that changed since the last view of this stream.")
    gone: tuple[str, ...] = Field(description="Nodes that are gone since the last view of this stream.")
    depths: dict[str, int] = Field(description="Pods by queue.")
    queue: tuple[LivePod, ...] = Field(description="Pods that wait, at most a hundred.")
    policies: tuple[LivePolicy, ...] = Field(description="Every SchedulingPolicy and its conditions.")
    moves: tuple[LiveRecord, ...] = Field(description="Moves that are under way, at most a hundred.")
    records: tuple[LiveRecord, ...] = Field(description="Moves that ended last, at most fifty.")
