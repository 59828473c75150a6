"""MoveMachine turns events of moves into instructions: no I/O, no clock, no randomness.

::

                ┌─(approved)─┐                                  ┌▶ Evicting ───▶ Replacing, Leaving ─┐
plan ─▶ Opening ─▶ Proposed  ▼                                  │                                    │
  └───────────────────────▶ Waiting ─▶ Checking ─▶ Committing ──┼▶ Requesting ─▶ Replacing ──────────┼▶ Closed
                                                                └▶ Surging ──┬───────────────────────┤
                                                                             └▶ Reverting ───────────┘

Victims of preemption take Leaving. The table of every event in every stage is in docs/adr/0024-two-wings.md,
section 3; the transitions are in :mod:`~plimsoll.rebalancing.moves.eviction` and in the tables of the
optional packages.
"""

from collections.abc import Sequence
from typing import Protocol

from plimsoll.rebalancing.moves.events import Event
from plimsoll.rebalancing.moves.instructions import Instruction
from plimsoll.rebalancing.moves.state import MoveState, Surroundings
from plimsoll.rebalancing.moves.transition import MoveTable


class InvalidTransition(Exception):
    """An event that cannot happen in a stage.

    Attributes:
        state: Of the move.
        event: That came.
        story: The events that the move has seen, oldest first.
    """

    def __init__(self, state: MoveState, event: Event, story: Sequence[str]) -> None:
        super().__init__(state, event, story)
        self.state = state
        self.event = event
        self.story = tuple(story)

    def __str__(self) -> str:
        came = type(self.event).__name__
        return f"{came} cannot happen to {self.state.key} in {self.state.stage.name}: {' '.join(self.story)}"


class Machine(Protocol):
    """What the executor needs of the machine."""

    def handle(self, event: Event, now: float) -> tuple[Instruction, ...]:
        """What is to be done; ``now`` in seconds of the monotonic clock."""


__all__ = ["InvalidTransition", "Machine", "MoveState", "MoveTable", "Surroundings"]
