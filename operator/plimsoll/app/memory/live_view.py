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
    zone: str = Field(default="", description="Zone of the node, by the label topology.kubernetes.io/zone.")
    taints: tuple[str, ...] = Field(default=(), description="Taints that keep pods out, as key=value:Effect.")


class LiveCondition(AnswerPart):
    """A condition of a policy."""

    type: str
    status: str
    reason: str
    message: str


class LiveRefusal(AnswerPart):
    """Candidates of the last run that stay for one reason."""

    reason: str
    count: int
    message: str


class LivePolicy(AnswerPart):
    """A policy: what it does, what it has done, and its conditions."""

    policy: str
    mode: str = Field(default="", description="Mode of its rebalancing; empty without.")
    scheduler: str = Field(default="", description="The schedulerName that it serves; empty without.")
    is_suspended: bool = Field(default=False, description="Whether spec.suspend is true.")
    last_run: str = Field(default="", description="When its last run started, RFC 3339; empty before one.")
    last_result: str = Field(default="", description="What came of it, in a sentence.")
    next_run: str = Field(default="", description="When it runs next; empty where that is not known.")
    moved: int = Field(default=0, ge=0, description="Moves that ended well, by the records that are kept.")
    failed: int = Field(default=0, ge=0, description="Moves that returned or failed.")
    refused: tuple[LiveRefusal, ...] = Field(default=(), description="Why candidates of the last run stay.")
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
    why: str = Field(default="", description="Why the pod is moved, in a sentence.")
    landed_node: str = Field(default="", description="Where the replacement is; empty until it has a node.")
    time: str = Field(default="", description="When it came to its phase, RFC 3339.")


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
    time: str = Field(default="", description="When the view was taken, RFC 3339; ages are relative to it.")
    node_count: int = Field(description="Number of nodes in the cluster.")
    pod_count: int = Field(description="All pods with a node.")
    nodes: tuple[LiveNode, ...] = Field(description="Nodes that changed since the last view of this stream.")
    gone: tuple[str, ...] = Field(description="Nodes that are gone since then.")
    depths: dict[str, int] = Field(description="Pods by queue.")
    queue: tuple[LivePod, ...] = Field(description="Pods that wait, at most a hundred.")
    reasons: dict[str, int] = Field(
        default={}, description="Waiting pods by the plugins that rejected them, the most frequent first."
    )
    policies: tuple[LivePolicy, ...] = Field(description="SchedulingPolicies of the cluster, all of them.")
    moves: tuple[LiveRecord, ...] = Field(description="Moves that are under way, at most a hundred.")
    records: tuple[LiveRecord, ...] = Field(description="Moves that ended last, at most fifty.")
