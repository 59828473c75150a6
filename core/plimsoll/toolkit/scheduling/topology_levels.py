"""Levels of topology: node labels from the widest to the narrowest, as a policy or a cloud has them.

Sources: cloud-provider-aws (``topology.k8s.aws``, layer 3 is nearest to the instance), GKE's compact
placement (``cloud.google.com/gce-topology-*``), NVIDIA's topograph (``network.topology.nvidia.com``).
"""

from msgspec import Struct

from plimsoll.model.kinds.pod_group import PodGroup

ZONE = "topology.kubernetes.io/zone"

KNOWN = (
    (ZONE, *(f"topology.k8s.aws/network-node-layer-{layer}" for layer in (1, 2, 3))),
    (ZONE, *(f"cloud.google.com/gce-topology-{level}" for level in ("block", "subblock", "host"))),
    tuple(f"network.topology.nvidia.com/{level}" for level in ("core", "spine", "leaf", "accelerator")),
)
"""Levels of clouds, for policies that name none."""


class GroupRules(Struct, frozen=True):
    """What a policy says about groups.

    Attributes:
        derives: Whether pods of known owners form groups without naming any.
        levels: Node labels, the widest level first; without them, those of the clouds.
        preferred: The label for groups that state no preference, "" for none.
    """

    derives: bool = False
    levels: tuple[str, ...] = ()
    preferred: str = ""

    def near(self, group: PodGroup | None) -> tuple[str, ...]:
        """The labels whose values members should share, the narrowest first, none beyond the required one."""
        if group is None:
            return ()
        preferred, required = group.preferred_topology or self.preferred, group.spec.topology_key
        if not preferred or preferred == required:
            return ()
        chain = next((each for each in (self.levels, *KNOWN) if preferred in each), (preferred,))
        narrowest = chain.index(preferred)
        widest = chain.index(required) + 1 if required in chain else 0
        return tuple(reversed(chain[widest : narrowest + 1]))


NO_RULES = GroupRules()
"""For schedulers whose policy says nothing about groups."""
