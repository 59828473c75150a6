"""An operator with a planted bug, as a command: its name, then what ``plimsoll`` takes."""

from __future__ import annotations

import sys
from typing import Any

from chaos.feature_slips import FEATURE_SLIPS
from plimsoll.app import process
from plimsoll.app.operator import Operator
from simulation.planted_bugs import PLANTED

if __name__ == "__main__":
    name = sys.argv.pop(1)
    slip = {**PLANTED, **FEATURE_SLIPS}[name]

    def built(*args: Any, **kwargs: Any) -> Operator:
        """The operator that the command builds, broken."""
        one = Operator(*args, **kwargs)
        slip(one)
        return one

    process.Operator = built  # type: ignore[attr-defined, assignment] # that is the bug's way in
    from plimsoll.commands.program import main

    main()
