"""Adoption: new pods get a policy's scheduler name without a change of their workloads."""

from typing import Annotated, ClassVar

from pydantic import Field

from plimsoll.api.schema.label_selectors import LabelSelectorSpec
from plimsoll.api.schema.resource import Resource
from plimsoll.api.schema.rules import Rule, UniqueItems
from plimsoll.api.v1alpha1.scope import NamespaceScope

OwnerKind = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9]*$", max_length=63, examples=["ReplicaSet"])]
"""Kind of a controller of pods."""


class AdoptSpec(Resource):
    """New pods that get this scheduler's name: all parts must match; pods that name a scheduler keep it.

    ``plimsoll adopt`` writes the admission policy that does it; the operator cannot. While no operator serves
    the policy, new pods stay with default-scheduler.
    """

    rules: ClassVar = (
        Rule(
            cel="has(self.namespaces) && (has(self.namespaces.labelSelector)"
            " || (has(self.namespaces.include) && size(self.namespaces.include) > 0)"
            " || (has(self.namespaces.exclude) && size(self.namespaces.exclude) > 0))",
            holds=lambda self: (
                self.namespaces.label_selector is not None
                or bool(self.namespaces.include or self.namespaces.exclude)
            ),
            message="say whose pods are adopted: give namespaces.include, exclude or labelSelector",
            field="namespaces",
        ),
        Rule(
            cel="!has(self.ownerKinds) || self.ownerKinds.all(kind, !(kind in ['Deployment', 'CronJob']))",
            holds=lambda self: not {"Deployment", "CronJob"} & {*self.owner_kinds},
            message="name the kind that makes the pods: ReplicaSet for Deployments, Job for CronJobs",
            field="ownerKinds",
        ),
    )

    namespaces: NamespaceScope = Field(
        description="Namespaces of the pods. kube-system and the operator's own namespace are left out "
        "unless include names them."
    )
    pod_selector: LabelSelectorSpec | None = Field(
        default=None, description="Only pods whose labels match; left out, labels do not matter."
    )
    owner_kinds: Annotated[tuple[OwnerKind, ...], Field(max_length=16), UniqueItems()] = Field(
        default=(),
        description="Only pods whose controller is of one of these kinds; left out, all pods but those of "
        "DaemonSets.",
        examples=[["ReplicaSet", "StatefulSet"]],
    )
    percentage: int = Field(
        default=100,
        ge=1,
        le=100,
        description="A canary: about this part of the controllers, such as ReplicaSets, chosen by their uid. "
        "All pods of a controller are treated alike; below 100, pods without a controller are not adopted.",
    )
