"""Slips that only a world with features shows: in windows of budgets, in gangs, in handing out devices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from plimsoll.app.operator import Operator
from plimsoll.devices.taken import Taken
from plimsoll.policies import rebalancing as config
from plimsoll.scheduling.devices import device_claims
from plimsoll.scheduling.gangs.attempt import GangAttempts
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

    replaced(GangAttempts, "takes", lambda _: alone)


def gives_devices_twice(_: Operator) -> None:
    """No allocation takes a device away from others, and none is noticed before a pod is bound."""

    def unchanged(*_: Any) -> None:
        return

    replaced(Taken, "add", lambda _: unchanged)
    replaced(Taken, "remove", lambda _: unchanged)
    replaced(device_claims, "contested", lambda _: no_rival)


def no_rival(*_: Any) -> str:
    """Nothing is contested."""
    return ""


FEATURE_SLIPS: Mapping[str, Callable[[Operator], None]] = {
    slip.__name__: slip for slip in (evicts_in_closed_windows, starts_gangs_in_parts, gives_devices_twice)
}
