"""NodeMaintenance: nodes to be emptied by proven moves, a window, a number at a time, choices about pods."""

from enum import StrEnum
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from plimsoll.api.schema.conditions import Conditions
from plimsoll.api.schema.fields import ObjectName, SchedulerName, Timestamp
from plimsoll.api.schema.label_selectors import LabelSelectorSpec
from plimsoll.api.schema.resource import CustomResource, Definition, PrinterColumn, Resource
from plimsoll.api.schema.rules import Rule, UniqueItems
from plimsoll.api.v1alpha1.schedules import Window

DRAINED = "Drained"
"""The condition that ``kubectl wait`` waits for: every node is closed and has no pod that could leave."""

MOST_NODES = 1000
"""Nodes that one object may name."""


class MaintenancePhase(StrEnum):
    """How far a maintenance has come."""

    PENDING = "Pending"  #: nothing has begun: the window is closed, or the plan is being made
    DRAINING = "Draining"  #: pods are being moved, or nodes wait for their turn
    BLOCKED = "Blocked"  #: nothing moves: the remaining nodes have pods that cannot leave now
    DRAINED = "Drained"  #: all nodes are closed and empty, and stay closed
    STOPPED = "Stopped"  #: a move has failed; nothing more is begun until the spec changes
    EXPIRED = "Expired"  #: the deadline has passed; nothing more is begun until the spec changes
    SUSPENDED = "Suspended"  #: spec.suspend is true; all nodes are open again
    INVALID = "Invalid"  #: the spec cannot be carried out


class MaintainedNodePhase(StrEnum):
    """How far one node has come."""

    WAITING = "Waiting"
    BLOCKED = "Blocked"
    DRAINING = "Draining"
    DRAINED = "Drained"
    MISSING = "Missing"


class MaintenanceWindow(Window):
    """When nodes may be begun; moves under way when it closes are seen to their end."""


class NodeMaintenanceSpec(Resource):
    """Which nodes are emptied, and how; each node of all its pods, or of none of them."""

    rules = (
        Rule(
            cel="(has(self.nodes) && size(self.nodes) > 0) != has(self.nodeSelector)",
            holds=lambda self: bool(self.nodes) != (self.node_selector is not None),
            message="give either nodes, at least one, or nodeSelector",
        ),
    )

    nodes: Annotated[tuple[ObjectName, ...], Field(max_length=MOST_NODES), UniqueItems()] = Field(
        default=(), description="Names of the nodes, in the order in which they are tried."
    )
    node_selector: LabelSelectorSpec | None = Field(
        default=None,
        description="Instead of names: all nodes with these labels, as of when the object was created or its "
        "spec changed last; later ones are left alone.",
    )
    window: MaintenanceWindow | None = Field(
        default=None, description="When nodes may be begun; left out, at any time."
    )
    deadline: Timestamp | None = Field(
        default=None, description="Time from which no further move is begun; left out, there is no end."
    )
    max_concurrent: int = Field(
        default=1, ge=1, le=MOST_NODES, description="Nodes that are being emptied at the same time, at most."
    )
    max_concurrent_per_zone: int | None = Field(
        default=None,
        ge=1,
        le=MOST_NODES,
        description="Nodes of one zone (topology.kubernetes.io/zone) that are being emptied at the same "
        "time, at most; left out, only maxConcurrent counts.",
    )
    ignore_daemon_sets: bool = Field(
        default=True,
        description="Pods of DaemonSets stay, as static pods do; false leaves a node alone that has some.",
    )
    delete_empty_dir_data: bool = Field(
        default=False,
        description="Whether pods with emptyDir or hostPath volumes leave, whose data there is lost; false "
        "leaves their nodes alone.",
    )
    min_replicas: int = Field(
        default=2,
        ge=1,
        le=2**31 - 1,
        description="Ready pods that an owner must have for one to be evicted. 1 allows evicting the only "
        "one, which is an outage until its replacement is ready; with 2 it leaves by a surge, or keeps its "
        "node from being emptied.",
    )
    surge: bool = Field(
        default=True,
        description="Whether pods of Deployments leave replacement first where that is possible: the only "
        "one by a rollout, one of several by one replica more and one less; needs the rights to patch and to "
        "scale Deployments.",
    )
    longest_grace_seconds: int | None = Field(
        default=None,
        ge=0,
        le=2**31 - 1,
        description="Nodes with a pod whose terminationGracePeriodSeconds is longer are left alone; left "
        "out, a node is under way until its pods have ended, however long that takes.",
    )
    other_schedulers: Annotated[tuple[SchedulerName, ...], Field(max_length=100), UniqueItems()] = Field(
        default=(),
        description="Schedulers that no policy of this operator serves and whose pods may leave; where they "
        "go is then a forecast.",
        examples=[["default-scheduler"]],
    )
    suspend: bool = Field(
        default=False,
        description="Cancels: moves that have not begun are called off, and all nodes are opened again. "
        "False continues.",
    )


class MaintainedMove(Resource):
    """Where a pod goes, by the latest plan."""

    pod: str = Field(max_length=317, description="The pod, as namespace/name.")
    target: str = Field(max_length=253, description="The node for its replacement.")
    surge: bool = Field(default=False, description="Whether the replacement comes first, by a rollout.")


class MaintainedNode(Resource):
    """One node of a maintenance."""

    name: ObjectName = Field(description="Name of the node.")
    phase: MaintainedNodePhase = Field(
        description="Waiting: for its turn or the window; Blocked: a pod cannot leave; Draining; Drained: "
        "closed, and no pod is left that could leave; Missing: there is no such node."
    )
    pods: int = Field(default=0, ge=0, description="Pods on it that are to leave.")
    reason: str | None = Field(default=None, max_length=253, description="Why it is blocked, in one word.")
    message: str | None = Field(default=None, max_length=1024, description="Why it is blocked: which pod.")
    moves: Annotated[tuple[MaintainedMove, ...], Field(max_length=20)] = Field(
        default=(), description="Where its pods go, by the latest plan; the first twenty."
    )


class NodeMaintenanceStatus(Resource):
    """How far the maintenance has come; written by the operator alone."""

    observed_generation: int | None = Field(
        default=None, ge=0, description="Generation of the spec that this status is about."
    )
    phase: MaintenancePhase | None = Field(default=None, description="How far it has come.")
    start_time: Timestamp | None = Field(
        default=None, description="When this generation of the spec was seen first."
    )
    drained: int = Field(default=0, ge=0, description="Nodes that are drained.")
    total: int = Field(default=0, ge=0, description="Nodes that are to be drained.")
    expected_end: Timestamp | None = Field(
        default=None,
        description="When the last node will be drained at the pace so far; known once one is.",
    )
    nodes: Annotated[tuple[MaintainedNode, ...], Field(max_length=MOST_NODES), UniqueItems("name")] = Field(
        default=(), description="The nodes, in the order in which they are tried."
    )
    conditions: Conditions = Field(
        default=(),
        description="Drained: all nodes are closed and have no pod that could leave; otherwise the message "
        "says what is missing.",
    )


class NodeMaintenance(CustomResource):
    """Nodes to be emptied without an outage, and to be kept closed until the object is deleted."""

    definition: ClassVar = Definition(
        kind="NodeMaintenance",
        plural="nodemaintenances",
        short_name="nmaint",
        scope="Cluster",
        columns=(
            PrinterColumn("Phase", ".status.phase", description="How far it has come."),
            PrinterColumn("Drained", ".status.drained", "integer", "Nodes that are drained."),
            PrinterColumn("Nodes", ".status.total", "integer", "Nodes that are to be drained."),
            PrinterColumn(
                "Expected", ".status.expectedEnd", description="When the last node will be drained."
            ),
            PrinterColumn("Deadline", ".spec.deadline", description="When no further move is begun."),
            PrinterColumn("Age", ".metadata.creationTimestamp", "date"),
            PrinterColumn("Window", ".spec.window.schedule", priority=1),
            PrinterColumn("Message", '.status.conditions[?(@.type=="Drained")].message', priority=1),
        ),
        selectable_fields=(".status.phase",),
    )

    kind: Literal["NodeMaintenance"] = Field(default="NodeMaintenance", description="Kind of the object.")
    spec: NodeMaintenanceSpec = Field(description="Which nodes are emptied, and how.")
    status: NodeMaintenanceStatus | None = Field(
        default=None, description="How far the maintenance has come; written by the operator alone."
    )
