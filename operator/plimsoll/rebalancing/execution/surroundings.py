"""ClusterSurroundings answers what the move machine reads of the world, from memory."""

from collections.abc import Callable, Sequence

from plimsoll.api.v1alpha1.eviction import EvictionSpec
from plimsoll.planning.moves import Move
from plimsoll.rebalancing.closed_nodes import ClosedNodes
from plimsoll.rebalancing.moves.sightings import facts_of
from plimsoll.rebalancing.moves.state import PodFacts
from plimsoll.rebalancing.pending_pods import PendingPods
from plimsoll.rebalancing.records.drafts import moves_of


class ClusterSurroundings:
    """The world at any moment.

    Args:
        pending: The pods, placed or not.
        closed: Knows which moves empty a node.
        hold_up: Why approved moves of a policy wait; "" when they do not.
        cannot_request: Reason and sentence why no EvictionRequest can be made now; None when it can.

    Attributes:
        needs: Why a victim of preemption need not go, by record, as long as its eviction is being prepared.
    """

    def __init__(
        self,
        pending: PendingPods,
        closed: ClosedNodes,
        hold_up: Callable[[str], str],
        cannot_request: Callable[[], tuple[str, str] | None],
    ) -> None:
        self.needs: dict[str, Callable[[], str]] = {}
        self._pending = pending
        self._closed = closed
        self._hold_up = hold_up
        self._cannot_request = cannot_request

    def pod(self, uid: str) -> PodFacts | None:
        """A pod, placed or not; None when it does not exist."""
        found = self._pending.find(uid)
        return None if found is None else facts_of(found.pod)

    def held_up(self, policy: str) -> str:
        """Why approved moves of a policy wait."""
        return self._hold_up(policy)

    def waits(self, uid: str) -> bool:
        """Whether a pod still waits for a node."""
        return self._pending.waits(uid) is not None

    def needless(self, key: str) -> str:
        """Why a victim need not go, "" when it must."""
        asked = self.needs.get(key)
        return "" if asked is None else asked()

    def proposed(self, specs: Sequence[EvictionSpec]) -> tuple[Move, ...] | None:
        """The moves of approved records, for the pods as they are; None when they would be for no pod."""
        return moves_of(specs, self._pending.find, self._closed.concerns)

    def empties(self, move: Move) -> bool:
        """Whether the move empties its node together with others of its bundle."""
        return self._closed.concerns(move)

    def cannot_request(self) -> tuple[str, str] | None:
        """Reason and sentence why no EvictionRequest can be made now; None when it can."""
        return self._cannot_request()
