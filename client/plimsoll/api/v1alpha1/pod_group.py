"""PodGroup: pods that start together or not at all; compatible in shape with scheduler-plugins' own.

Source: scheduler-plugins, ``scheduling.x-k8s.io/v1alpha1`` PodGroup (docs/adr, "Gangs").
"""

from enum import StrEnum
from typing import ClassVar, Literal

from pydantic import Field

from plimsoll.api.schema.conditions import Conditions
from plimsoll.api.schema.fields import Amounts, LabelKey, Timestamp
from plimsoll.api.schema.resource import CustomResource, Definition, PrinterColumn, Resource

SCHEDULED = "Scheduled"
"""Whether minMember members have, or had, a node; otherwise the message says what is missing."""


class GroupPhase(StrEnum):
    """How far a PodGroup has come."""

    PENDING = "Pending"
    PRE_SCHEDULING = "PreScheduling"
    SCHEDULING = "Scheduling"
    SCHEDULED = "Scheduled"
    RUNNING = "Running"
    UNKNOWN = "Unknown"
    FINISHED = "Finished"
    FAILED = "Failed"


class TopologySpec(Resource):
    """Where members run together, by labels of nodes."""

    required: LabelKey | None = Field(
        default=None,
        description="All members get nodes with the same value of this label, or none starts. Left out, "
        "any nodes.",
    )
    preferred: LabelKey | None = Field(
        default=None,
        description="Members get nodes with the same value of this label if one has room for all; otherwise "
        "nodes with as few values of it as possible. Left out, the policy's preferredTopology.",
    )


class PodGroupResourceSpec(Resource):
    """Number of members that start together, and how long a start may take."""

    min_member: int = Field(
        default=1, ge=1, le=2**31 - 1, description="Pods that must get a node together; fewer never start."
    )
    min_resources: Amounts | None = Field(
        default=None,
        description="Resources that must be free in the cluster before a start is tried; left out, "
        "nothing is asked beforehand.",
    )
    schedule_timeout_seconds: int | None = Field(
        default=None,
        ge=1,
        le=86_400,
        description="Seconds that a start may take from the decision to the last binding: members wait so "
        "long for one another, and room is held so long for those whose binding failed. Left out, 60.",
    )
    topology: TopologySpec | None = Field(
        default=None, description="Where members run together; left out, the policy decides."
    )


class PodGroupResourceStatus(Resource):
    """Progress of the group's start; written by the operator alone."""

    phase: GroupPhase | None = Field(default=None, description="How far the group has come.")
    occupied_by: str | None = Field(
        default=None, max_length=4096, description="Owner of its pods, as namespace/name."
    )
    scheduled: int | None = Field(default=None, ge=0, description="Members with a node that have not ended.")
    running: int | None = Field(default=None, ge=0, description="Members that run.")
    succeeded: int | None = Field(default=None, ge=0, description="Members that ended well.")
    failed: int | None = Field(default=None, ge=0, description="Members that ended badly.")
    schedule_start_time: Timestamp | None = Field(
        default=None, description="When the group was decided to start."
    )
    conditions: Conditions = Field(
        default=(),
        description="Scheduled: minMember members have a node; otherwise the message says how many fit and "
        "what is missing.",
    )


class PodGroupResource(CustomResource):
    """A gang: pods in its namespace that name it by a label start together or not at all."""

    definition: ClassVar = Definition(
        kind="PodGroup",
        plural="podgroups",
        short_name="plpg",
        scope="Namespaced",
        columns=(
            PrinterColumn("Phase", ".status.phase", description="How far the group has come."),
            PrinterColumn("MinMember", ".spec.minMember", "integer", "Pods that must get a node together."),
            PrinterColumn("Scheduled", ".status.scheduled", "integer", "Members with a node."),
            PrinterColumn("Running", ".status.running", "integer", "Members that run."),
            PrinterColumn("Succeeded", ".status.succeeded", "integer", "Members that ended well."),
            PrinterColumn("Failed", ".status.failed", "integer", "Members that ended badly."),
            PrinterColumn("Age", ".metadata.creationTimestamp", "date"),
            PrinterColumn("OccupiedBy", ".status.occupiedBy", description="Owner of its pods.", priority=1),
            PrinterColumn("Message", '.status.conditions[?(@.type=="Scheduled")].message', priority=1),
        ),
        selectable_fields=(".status.phase",),
    )

    kind: Literal["PodGroup"] = Field(default="PodGroup", description="Kind of the object.")
    spec: PodGroupResourceSpec = Field(
        description="Number of members that start together, and how long a start may take."
    )
    status: PodGroupResourceStatus | None = Field(
        default=None, description="Progress of the group's start; written by the operator alone."
    )
