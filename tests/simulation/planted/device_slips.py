"""Slips in handing out devices."""

from __future__ import annotations

from typing import Any

from plimsoll.app.operator import Operator
from simulation.planted.surgery import replaced


def looks_at_no_other_claim(operator: Operator) -> None:
    """A pod is bound as soon as the watch shows its own claim, although another claim has its devices."""

    def made(problem: Any) -> Any:
        def blind(attempt: Any, bookings: Any) -> tuple[str, str]:
            found, waiting = problem(attempt, bookings)
            if attempt.is_contested:
                attempt.is_contested = False
                return "", ""
            return found, waiting

        return blind

    replaced(operator.wing.devices, "_problem", made)


def never_gives_way(operator: Operator) -> None:
    """A claim whose devices another one has as well keeps them."""

    async def kept(_claim: Any, _pod: Any) -> None:
        return

    replaced(operator.wing.devices, "_deallocate", lambda _: kept)
