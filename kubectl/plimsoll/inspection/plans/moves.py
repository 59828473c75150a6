"""Lists the moves of a plan in the order in which the operator makes them."""

from collections.abc import Iterator
from itertools import groupby

from plimsoll.api.v1alpha1.eviction import Purpose
from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.inspection.plans.answer import Departure, PlannedMove
from plimsoll.planning.moves import EvictionPlan, Move


def moves_in_order(made: EvictionPlan, mode: Mode) -> list[Move]:
    """The moves in the operator's order: in mode Enforce, waiting moves of a bundle come last in it.

    Source: :meth:`plimsoll.rebalancing.execution.feeder.MoveFeeder.feed`.
    """
    ordered: list[Move] = []
    for _, group in groupby(enumerate(made.moves), lambda each: each[1].bundle or each[0]):
        together = [move for _, move in group]
        ordered += sorted(together, key=lambda move: move.waits) if mode is Mode.ENFORCE else together
    return ordered


def planned_moves(made: EvictionPlan, mode: Mode) -> Iterator[PlannedMove]:
    """The moves in the form of an answer."""
    for position, move in enumerate(moves_in_order(made, mode), start=1):
        yield PlannedMove(
            position=position,
            pod=move.pod.key,
            workload=move.workload.name,
            source_node=move.source,
            target_node=move.target or None,
            strategy=move.strategy,
            reason=move.reason,
            gain=move.gain,
            gain_maximum=move.maximum,
            ties=move.ties,
            forecast=move.is_forecast,
            directed=move.is_directed,
            purpose=Purpose.RESTART if move.renews else Purpose.MOVE,
            leaves_by=Departure.EVICTION if move.surge is None else Departure.SURGE,
            no_surge=move.unsurged or None,
            budget=move.budget or None,
            bundle=move.bundle or None,
            beneficiary=move.beneficiary.pod.key if move.beneficiary else None,
        )
