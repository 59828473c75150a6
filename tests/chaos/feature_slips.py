"""Slips that only a world with features shows: in windows of budgets, in gangs, in handing out devices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from plimsoll.app.operator import Operator
from plimsoll.rebalancing.runs import config
from plimsoll.scheduling.gangs.attempt import GangTaker
from simulation.planted.device_slips import looks_at_no_other_claim, never_gives_way
from simulation.planted.surgery import replaced


def evicts_in_closed_windows(_: Operator) -> None:
    """Budgets of policies are never in force."""

    def none(*_: Any) -> tuple[()]:
        return ()

    replaced(config, "_open_budgets", lambda _: none)


def starts_gangs_in_parts(_: Operator) -> None:
    """Members are placed one by one, as soon as enough of them exist."""

    def alone(*_: Any) -> bool:
        return False

    replaced(GangTaker, "takes", lambda _: alone)


FEATURE_SLIPS: Mapping[str, Callable[[Operator], None]] = {
    slip.__name__: slip
    for slip in (
        evicts_in_closed_windows,
        starts_gangs_in_parts,
        looks_at_no_other_claim,
        never_gives_way,
    )
}
