"""An operator with a planted bug, as a command: its name, then what ``e2e.one_name`` takes."""

from __future__ import annotations

import sys
from collections.abc import Callable

from e2e.one_name import serve_only
from plimsoll.scheduling.devices import device_claims


def ignores_rivals() -> None:
    """Pods are bound although another scheduler has allocated their devices as well."""
    device_claims.contested = lambda *_: ""  # type: ignore[attr-defined] # that is the bug's way in


PLANTED: dict[str, Callable[[], None]] = {"ignores_rivals": ignores_rivals}

if __name__ == "__main__":
    PLANTED[sys.argv.pop(1)]()
    serve_only(sys.argv.pop(1))
    from plimsoll.commands.program import main

    main()
