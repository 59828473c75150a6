"""Arguments of descheduler's DefaultEvictor (v1alpha2), with safer defaults.

Differs: pods with volume claims or resource claims are protected by default, owners need two pods, and
the check that a pod fits elsewhere is on, and can be switched off with planner Upstream only. The deprecated
booleans are left out.
"""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from plimsoll.api.schema.fields import ObjectName, SignedDuration
from plimsoll.api.schema.label_selectors import LabelSelectorSpec
from plimsoll.api.schema.resource import Resource
from plimsoll.api.schema.rules import UniqueItems
from plimsoll.api.v1alpha1.scope import PriorityThreshold


class DefaultProtection(StrEnum):
    """Protections that are on unless disabled."""

    SYSTEM_CRITICAL_PODS = "SystemCriticalPods"
    FAILED_BARE_PODS = "FailedBarePods"
    PODS_WITH_LOCAL_STORAGE = "PodsWithLocalStorage"
    DAEMON_SET_PODS = "DaemonSetPods"


class ExtraProtection(StrEnum):
    """Protections that are on when listed."""

    PODS_WITH_PVC = "PodsWithPVC"
    PODS_WITHOUT_PDB = "PodsWithoutPDB"
    PODS_WITH_RESOURCE_CLAIMS = "PodsWithResourceClaims"


class NoEvictionPolicy(StrEnum):
    """What the annotation ``descheduler.alpha.kubernetes.io/prefer-no-eviction`` means."""

    PREFERRED = "Preferred"
    MANDATORY = "Mandatory"


class ProtectedStorageClass(Resource):
    """A StorageClass whose volumes protect their pods."""

    name: ObjectName = Field(description="Name of the StorageClass.")


class PodsWithPVCConfig(Resource):
    """Narrows the protection PodsWithPVC."""

    protected_storage_classes: Annotated[
        tuple[ProtectedStorageClass, ...], Field(max_length=100), UniqueItems("name")
    ] = Field(
        default=(),
        description="Only claims of these classes protect their pod; empty means claims of any class.",
    )


class PodProtectionsConfig(Resource):
    """Arguments of single protections."""

    pods_with_pvc: PodsWithPVCConfig | None = Field(
        default=None, alias="PodsWithPVC", description="Arguments of the protection PodsWithPVC."
    )


class PodProtections(Resource):
    """Which protections are on."""

    default_disabled: Annotated[tuple[DefaultProtection, ...], Field(max_length=16), UniqueItems()] = Field(
        default=(), description="Default protections to switch off."
    )
    extra_enabled: Annotated[tuple[ExtraProtection, ...], Field(max_length=16), UniqueItems()] = Field(
        default=(ExtraProtection.PODS_WITH_PVC, ExtraProtection.PODS_WITH_RESOURCE_CLAIMS),
        description="Further protections to switch on; a list given here replaces the default one.",
    )
    config: PodProtectionsConfig | None = Field(default=None, description="Arguments of single protections.")


class EvictorSpec(Resource):
    """Arguments of the DefaultEvictor; they narrow the policy's scope further."""

    node_fit: bool = Field(
        default=True,
        description="A pod is evicted only when another node is feasible for it; false, as descheduler's "
        "default is, only with planner Upstream.",
    )
    node_selector: str | None = Field(
        default=None,
        max_length=4096,
        description="Nodes that count as possible targets, as a label selector in text form; left out, all.",
        examples=["pool=general,zone in (a,b)"],
    )
    label_selector: LabelSelectorSpec | None = Field(
        default=None, description="Only pods whose labels match may be evicted."
    )
    namespace_label_selector: LabelSelectorSpec | None = Field(
        default=None, description="Only pods of namespaces whose labels match may be evicted."
    )
    priority_threshold: PriorityThreshold | None = Field(
        default=None, description="Pods of this priority and above are never evicted."
    )
    min_replicas: int = Field(
        default=2,
        ge=0,
        le=2**31 - 1,
        description="Pods that an owner must have for one of them to be evicted; 0 and 1 allow the last one.",
    )
    min_pod_age: SignedDuration | None = Field(
        default=None,
        description="Pods started less than this ago are never evicted, as a duration such as 10m or 1h30m. "
        "Negative, as descheduler allows: pods that start later than this from now.",
    )
    no_eviction_policy: NoEvictionPolicy = Field(
        default=NoEvictionPolicy.PREFERRED,
        description="Pods annotated descheduler.alpha.kubernetes.io/prefer-no-eviction are evicted last "
        "(Preferred) or never (Mandatory).",
    )
    pod_protections: PodProtections = Field(
        default=PodProtections.model_construct(), description="Kinds of pods that are never evicted."
    )
