"""RebalancingRule: by which the owner of a namespace restricts the moves of her pods."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from plimsoll.api.schema.conditions import Conditions
from plimsoll.api.schema.fields import Timestamp
from plimsoll.api.schema.label_selectors import LabelSelectorSpec
from plimsoll.api.schema.resource import CustomResource, Definition, PrinterColumn, Resource
from plimsoll.api.schema.rules import Rule
from plimsoll.api.v1alpha1.schedules import Window

ACTIVE = "Active"
"""The condition that says whether the rule can be carried out, and what it holds back."""


class RebalancingRuleSpec(Resource):
    """What is not done to pods of the rule's own namespace; all rules of a namespace hold together."""

    rules = (
        Rule(
            cel="(has(self.never) && self.never) || (has(self.windows) && size(self.windows) > 0)"
            " || has(self.maxMovesPerHour)",
            holds=lambda self: self.never or bool(self.windows) or self.max_moves_per_hour is not None,
            message="say what is restricted: never: true, windows or maxMovesPerHour",
        ),
        Rule(
            cel="!(has(self.never) && self.never) || (!has(self.windows) && !has(self.maxMovesPerHour))",
            holds=lambda self: not self.never or (not self.windows and self.max_moves_per_hour is None),
            message="never: true leaves nothing for windows or maxMovesPerHour; write a rule of its own",
        ),
        Rule(
            cel="!has(self.maxMovesPerHour) || !has(self.podSelector)",
            holds=lambda self: self.max_moves_per_hour is None or self.pod_selector is None,
            message="maxMovesPerHour counts all moves of the namespace, so it goes without podSelector",
            field="maxMovesPerHour",
        ),
    )

    pod_selector: LabelSelectorSpec | None = Field(
        default=None, description="Which pods of the namespace; left out, all."
    )
    never: bool = Field(default=False, description="These pods are not moved at all.")
    windows: Annotated[tuple[Window, ...], Field(max_length=8)] = Field(
        default=(), description="These pods are moved only while one of the windows is open."
    )
    max_moves_per_hour: int | None = Field(
        default=None,
        ge=1,
        le=10_000,
        description="Pods of the namespace that all policies together may move within an hour.",
    )


class RebalancingRuleStatus(Resource):
    """What the rule holds back; written by the operator, which never reads it."""

    observed_generation: int | None = Field(
        default=None, ge=0, description="Generation of the spec that this status is about."
    )
    held_pods: int = Field(default=0, ge=0, description="Pods with a node that the rule keeps there now.")
    moves_last_hour: int | None = Field(
        default=None,
        ge=0,
        description="Moves of the namespace within the last hour, if it limits them.",
    )
    next_opening: Timestamp | None = Field(
        default=None, description="When a window opens next; absent while one is open."
    )
    conditions: Conditions = Field(
        default=(),
        description="Active: the rule is carried out; if it cannot be, no pod of the namespace is moved, "
        "and the message says why.",
    )


class RebalancingRuleResource(CustomResource):
    """What the owner of a namespace forbids to be done to her pods: it only restricts what policies do."""

    definition: ClassVar = Definition(
        kind="RebalancingRule",
        plural="rebalancingrules",
        short_name="rbrule",
        scope="Namespaced",
        columns=(
            PrinterColumn(
                "Active",
                '.status.conditions[?(@.type=="Active")].status',
                description="Whether it is carried out.",
            ),
            PrinterColumn("Never", ".spec.never", "boolean", "Whether the pods are not moved at all."),
            PrinterColumn("PerHour", ".spec.maxMovesPerHour", "integer", "Moves an hour, at most."),
            PrinterColumn("Held", ".status.heldPods", "integer", "Pods that it keeps on their nodes now."),
            PrinterColumn("Opens", ".status.nextOpening", description="When a window opens next."),
            PrinterColumn("Age", ".metadata.creationTimestamp", "date"),
            PrinterColumn("Message", '.status.conditions[?(@.type=="Active")].message', priority=1),
        ),
        selectable_fields=(),
    )

    kind: Literal["RebalancingRule"] = Field(default="RebalancingRule", description="Kind of the object.")
    spec: RebalancingRuleSpec = Field(description="What is not done to pods of this namespace.")
    status: RebalancingRuleStatus | None = Field(
        default=None, description="What the rule holds back; written by the operator, which never reads it."
    )
