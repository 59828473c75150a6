"""The result of a joint attempt for the members of a group: a node for each of enough members, or why not."""

from collections import Counter

from msgspec import Struct

from plimsoll.engine.decision import AttemptOutcome, Decision
from plimsoll.engine.gangs.topology_domains import TopologyPlacement
from plimsoll.framework import CycleState, PodInfo

#: Maximum number of different reasons that a message lists in full.
TOLD = 3


class Placement(Struct, frozen=True):
    """The node of one member, with its cycle state and nomination.

    Attributes:
        victims: Pods that have to leave first, for this member or for several.
    """

    decision: Decision
    node: str
    state: CycleState
    victims: tuple[PodInfo, ...] = ()


class GangDecision(Struct, frozen=True):
    """The result of a joint attempt; ``refused`` members do not fit in addition to the placements.

    Attributes:
        domain: The topology domain that was searched, in words; "" without one.
        said: What became of several groups, in words; "" for one.
    """

    placements: tuple[Placement, ...]
    refused: tuple[Decision, ...]
    needed: int
    domain: str = ""
    said: str = ""

    @property
    def is_feasible(self) -> bool:
        """Whether enough members fit together."""
        return len(self.placements) >= self.needed

    @property
    def plugins(self) -> frozenset[str]:
        """Plugins that rejected members; empty after an error, which only time may clear."""
        if any(each.outcome is AttemptOutcome.ERROR or each.diagnosis is None for each in self.refused):
            return frozenset()
        found = frozenset(
            name for each in self.refused if each.diagnosis is not None for name in each.diagnosis.plugins
        )
        # Members were refused in other domains or orders, too, for whatever reasons: any event may help.
        return found | {TopologyPlacement.name} if self.domain or self.said else found

    @property
    def no_node_helps(self) -> bool:
        """Whether too few members could fit whatever nodes there are."""
        hopeless = sum(each.no_node_helps for each in self.refused)
        return bool(self.refused) and len(self.placements) + len(self.refused) - hopeless < self.needed

    @property
    def awaits_victims(self) -> bool:
        """Whether a member fits nowhere only because its victims have not left yet."""
        return any(each.nomination is not None and each.nomination.node is None for each in self.refused)

    def message(self, placed: int, least: int | None = None) -> str:
        """How many fit, including ``placed`` members that have a node, and what the others lack.

        ``least``: the number of members that the gang needs, if the placed ones may be as many.
        """
        if self.said:
            return self.said
        fitting = placed + len(self.placements)
        total = fitting + len(self.refused)
        counts = Counter(each.message for each in self.refused).most_common()
        lacking = [f"{count} lack a node: {text}" for text, count in counts[:TOLD]]
        if len(counts) > TOLD:
            lacking.append(f"{len(counts) - TOLD} further reasons")
        if self.domain and not total - placed:
            return self.domain
        text = f"{fitting} of {total} members fit, {least or placed + self.needed} must; {'; '.join(lacking)}"
        return f"{self.domain}: {text}" if self.domain else text
