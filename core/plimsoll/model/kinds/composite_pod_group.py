"""CompositePodGroup: a group of groups, which start together or not at all; their pods name the groups.

Source: Kubernetes, ``scheduling.k8s.io`` v1alpha3 (1.37, gate ``CompositePodGroup``), KEP-6012.
"""

import msgspec

from plimsoll.model.kinds.metadata import ApiObject, Int64
from plimsoll.model.kinds.pod_group import CORE, DisruptionMode, GroupConstraints, PodGroupStatus

COMPOSITES = f"compositepodgroups.{CORE}"
"""The resource; begins the keys of composite groups."""


class CompositeGang(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """All or nothing: the number of groups that a start needs."""

    min_group_count: Int64 = 1


class CompositePolicy(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """All or nothing, or, without ``gang``, each group for itself."""

    gang: CompositeGang | None = None


class CompositePodGroupSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """How the groups start, and how they may leave."""

    parent_composite_pod_group_name: str = ""
    scheduling_policy: CompositePolicy = CompositePolicy()
    scheduling_constraints: GroupConstraints = GroupConstraints()
    disruption_mode: DisruptionMode = DisruptionMode()
    priority: Int64 | None = None
    preemption_policy: str = ""


class CompositePodGroup(ApiObject, frozen=True, kw_only=True, rename="camel", gc=False):
    """A group of groups, as in the API server; of its status only the conditions are used."""

    spec: CompositePodGroupSpec = CompositePodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()

    @property
    def group_key(self) -> str:
        """``compositepodgroups.scheduling.k8s.io/namespace/name``."""
        return composite_key(self.namespace, self.name)

    @property
    def parent(self) -> str:
        """The key of the composite group that this one is part of, "" for none."""
        name = self.spec.parent_composite_pod_group_name
        return composite_key(self.namespace, name) if name else ""

    @property
    def least(self) -> int:
        """The number of its groups that start together."""
        gang = self.spec.scheduling_policy.gang
        return 1 if gang is None else max(1, gang.min_group_count)

    @property
    def topology_key(self) -> str:
        """The node label whose value must be the same for the members of all groups, "" for none."""
        return next((each.key for each in self.spec.scheduling_constraints.topology), "")

    @property
    def leaves_whole(self) -> bool:
        """Whether the members of all groups leave together or none does."""
        return self.spec.disruption_mode.all is not None

    @property
    def binds(self) -> bool:
        """Whether its groups need one another while they run."""
        return self.leaves_whole or self.spec.scheduling_policy.gang is not None


def composite_key(namespace: str, name: str) -> str:
    """The key of the composite group with this name."""
    return f"{COMPOSITES}/{namespace}/{name}"


def is_composite(key: str) -> bool:
    """Whether a key is that of a composite group."""
    return key.startswith(f"{COMPOSITES}/")
