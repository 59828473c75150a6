"""Pods and nodes in the scope of a policy's rebalancing, for all of its strategies.

The pods that a policy *schedules* are chosen by the pods themselves, with ``spec.schedulerName``.
"""

from typing import Annotated

from pydantic import Field

from plimsoll.api.schema.fields import NamespaceName, ObjectName, SchedulerName
from plimsoll.api.schema.label_selectors import LabelSelectorSpec
from plimsoll.api.schema.resource import Resource
from plimsoll.api.schema.rules import Rule, UniqueItems

SYSTEM_CRITICAL_PRIORITY = 2_000_000_000

_Namespaces = Annotated[tuple[NamespaceName, ...], Field(max_length=1000), UniqueItems()]


class NamespaceScope(Resource):
    """Namespaces selected by name and by label; all given parts must match."""

    rules = (
        Rule(
            cel="!(has(self.include) && size(self.include) > 0"
            " && has(self.exclude) && size(self.exclude) > 0)",
            holds=lambda self: not (self.include and self.exclude),
            message="give either include or exclude, not both",
            field="exclude",
        ),
    )

    include: _Namespaces = Field(
        default=(), description="Namespaces whose pods are in scope; empty means all."
    )
    exclude: _Namespaces = Field(default=(), description="All namespaces but these.")
    label_selector: LabelSelectorSpec | None = Field(
        default=None, description="Only namespaces whose labels match; left out, labels do not matter."
    )


class PriorityThreshold(Resource):
    """A pod priority, as a number or as the name of a PriorityClass."""

    rules = (
        Rule(
            cel="has(self.value) != has(self.name)",
            holds=lambda self: (self.value is None) != (self.name is None),
            message="give exactly one of value and name",
        ),
    )

    value: int | None = Field(
        default=None,
        ge=-(2**31),
        le=SYSTEM_CRITICAL_PRIORITY,
        description="Pods of this priority and above are left alone.",
    )
    name: ObjectName | None = Field(
        default=None, description="PriorityClass; pods of its value and above are left alone."
    )


class Scope(Resource):
    """What rebalancing looks at; everything when left out."""

    namespaces: NamespaceScope = Field(
        default=NamespaceScope.model_construct(), description="Namespaces of the pods."
    )
    other_schedulers: Annotated[tuple[SchedulerName, ...], Field(max_length=100), UniqueItems()] = Field(
        default=(),
        description="Names of schedulers that no policy of this operator serves and whose pods may be moved "
        "all the same; the targets of such moves are forecasts. Left out, only pods are moved that a "
        "policy's schedulerName places.",
        examples=[["default-scheduler"]],
    )
    pod_selector: LabelSelectorSpec | None = Field(
        default=None, description="Only pods whose labels match; left out, labels do not matter."
    )
    node_selector: LabelSelectorSpec | None = Field(
        default=None,
        description="Only pods on nodes whose labels match, and only such nodes count when utilisation "
        "is compared; left out, all nodes.",
    )
    priority_threshold: PriorityThreshold | None = Field(
        default=None,
        description="Pods of this priority and above are left alone; left out, system-critical pods are "
        "(2000000000 and above), unless the evictor's protection SystemCriticalPods is disabled.",
    )
