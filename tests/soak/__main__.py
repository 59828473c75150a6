"""Soaks two operators for hours and judges whether they stay flat: ``make soak HOURS=2``."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from pathlib import Path

from soak.run import Plan, soaked
from soak.verdict import Soaked


def main() -> int:
    """Read the command line and soak, or judge kept curves again."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--hours", type=float, default=2.0)
    parser.add_argument("--folder", type=Path, default=Path(".soak"), help="for curves and logs")
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--deletions", type=float, default=9.0, help="pods deleted a second: six events each")
    parser.add_argument("--program", default="plimsoll", help="the module that is run as the operator")
    parser.add_argument("--kept", action="store_true", help="judge the curves in the folder again")
    chosen = parser.parse_args()
    folder: Path = chosen.folder.resolve()
    if not chosen.kept:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that all processes end with this one
        plan = Plan(chosen.hours, folder, chosen.nodes, chosen.deletions, (chosen.program,))
        asyncio.run(soaked(plan))
    curves = Soaked.of(folder)
    problems = curves.problems()
    for one in curves.judged():
        found = one.slope("rss_mib")
        if found is not None:
            print(
                f"{one.title}: {one.span_s / 60:.0f} min, rss {found.value:+.2f} MiB/h"
                f" ({found.low:+.2f} to {found.high:+.2f})"
            )
    print("\n".join(problems) or "flat: nothing grew, nothing was lost")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
