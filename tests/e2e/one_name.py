"""An operator that schedules the pods of one scheduler name: ``python -m e2e.one_name NAME run ...``.

Two of them, with a lease each, are two schedulers of one cluster that know nothing of each other's plans.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from plimsoll.app.operator import Operator

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.engine.scheduler import ProfileScheduler
    from plimsoll.planning.forecasts import Forecasts


def serve_only(name: str) -> None:
    """Leave the pods of all other scheduler names to others."""
    serve = Operator._serve

    def narrowed(
        operator: Operator, schedulers: Mapping[str, ProfileScheduler], forecasts: Forecasts
    ) -> None:
        serve(operator, {each: schedulers[each] for each in schedulers if each == name}, forecasts)

    Operator._serve = narrowed  # type: ignore[method-assign,assignment] # before one is built


if __name__ == "__main__":
    serve_only(sys.argv.pop(1))
    from plimsoll.commands.program import main

    main()
