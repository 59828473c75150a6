"""LiveView is the content of a running operator's live page: nodes, queue, policies, moves, records."""

from pydantic import Field

from plimsoll.answers.answer import Answer, AnswerPart


class LiveNode(AnswerPart):
    """One node; shares are of its allocatable amounts."""

    node: str = Field(description="Name of the node.")
    pods: int = Field(ge=0, description="Pods that are placed or assumed on it.")
    cpu_percent: int = Field(ge=0, description="Cpu that they request.")
    memory_percent: int = Field(ge=0, description="Memory that they request.")
    is_open: bool = Field(description="Whether it is ready and not cordoned.")


class LiveCondition(AnswerPart):
    """A condition of a policy."""

    type: str
    status: str
    reason: str
    message: str


class LivePolicy(AnswerPart):
    """A policy and its conditions."""

    policy: str
    conditions: tuple[LiveCondition, ...]


class LiveRecord(AnswerPart):
    """A move as recorded."""

    record: str = Field(description="The Eviction record, as namespace/name.")
    pod: str = Field(description="The pod that is moved, as namespace/name.")
    source_node: str
    target_node: str
    policy: str
    strategy: str
    phase: str
    message: str


class LivePod(AnswerPart):
    """A pod in the scheduling queue."""

    pod: str = Field(description="The pod, as namespace/name.")
    queue: str = Field(description="active, backoff, unschedulable, gated or in flight.")
    attempts: int
    waited_seconds: int
    rejected_by: tuple[str, ...] = Field(description="Plugins that rejected the last attempt.")


class LiveView(Answer):
    """The operator's present state, or changes of it."""

    standing: str = Field(description="Whether the process that answers leads, in words.")
    node_count: int = Field(description="Number of nodes in the cluster.")
    pod_count: int = Field(description="All pods with a node.")
    nodes: tuple[LiveNode, ...] = Field(description="Nodes that changed since the last view of this stream.")
    gone: tuple[str, ...] = Field(description="Nodes that are gone since then.")
    depths: dict[str, int] = Field(description="Pods by queue.")
    queue: tuple[LivePod, ...] = Field(description="Pods that wait, at most a hundred.")
    policies: tuple[LivePolicy, ...] = Field(description="Every SchedulingPolicy and its conditions.")
    moves: tuple[LiveRecord, ...] = Field(description="Moves that are under way, at most a hundred.")
    records: tuple[LiveRecord, ...] = Field(description="Moves that ended last, at most fifty.")
