"""Defines the interface of surges, the optional way of moving pods.

Surges are a package that the operator passes to the wing; nothing else imports it.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from plimsoll.api.v1alpha1.eviction import EvictionSpec
from plimsoll.model.names import RecordKey
from plimsoll.planning.moves import Move
from plimsoll.planning.surges import Deployments
from plimsoll.rebalancing.execution.executor import Awaited, Immediate
from plimsoll.rebalancing.moves.events import RolloutAnswered
from plimsoll.rebalancing.moves.recovery import RecoveryRule
from plimsoll.rebalancing.moves.sightings import Sightings
from plimsoll.rebalancing.moves.transition import MoveTable


class SurgeWay(Protocol):
    """Moves by a rollout that starts the replacement first.

    Attributes:
        table: Its transitions.
        recovered: Its recovery rule for records after a restart.
        sightings: Finds the replacements of its moves.
        immediate: Handlers of its instructions that await nothing, by type.
        awaited: Handlers of the others.
    """

    table: MoveTable
    recovered: RecoveryRule
    sightings: Sequence[Sightings]
    immediate: Mapping[type, Immediate]
    awaited: Mapping[type, Awaited]

    @property
    def trouble(self) -> str:
        """The missing right, in a sentence; "" if none is known to be missing."""

    async def deployments(self) -> Deployments:
        """All Deployments, for one run."""

    async def present(self, move: Move) -> Deployments:
        """The present Deployment of a surge."""

    async def inspect(self, key: RecordKey, spec: EvictionSpec) -> RolloutAnswered | None:
        """The state of the Deployment of a record's surge."""
