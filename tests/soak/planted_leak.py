"""An operator with a leak, which a soak of eight minutes must find.

``make soak HOURS=0.13 ARGS="--program soak.planted_leak"``.
Each pod event is remembered for ever: at fifty events a second a MiB a minute.
"""

from __future__ import annotations

import os

from plimsoll.commands.program import main
from plimsoll.telemetry.scheduling import MetricsObserver

#: Of one event.
LEAK_BYTES = 350

_remembered: list[bytes] = []
_taken_in = MetricsObserver.batch_taken_in


def _remember(self: MetricsObserver, resource: str, events: int, seconds: float) -> None:
    if resource == "pods":
        _remembered.extend(os.urandom(LEAK_BYTES) for _ in range(events))
    _taken_in(self, resource, events, seconds)


if __name__ == "__main__":
    MetricsObserver.batch_taken_in = _remember  # type: ignore[method-assign] # that is the leak
    main()
