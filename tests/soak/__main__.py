"""Soaks two operators for hours and judges whether they stay flat: ``make soak HOURS=2``."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from book.page import where
from book.results import Circumstances, circumstances
from soak.pictures import drawn
from soak.run import Plan, soaked
from soak.table import section, written
from soak.verdict import Soaked

ROOT = Path(__file__).parents[2]
CIRCUMSTANCES = "circumstances.json"


def main() -> int:
    """Read the command line and soak, or judge kept curves again."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--hours", type=float, default=2.0)
    parser.add_argument("--folder", type=Path, default=Path(".soak"), help="for curves, pictures and logs")
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--deletions", type=float, default=9.0, help="pods deleted a second: six events each")
    parser.add_argument("--program", default="plimsoll", help="the module that is run as the operator")
    parser.add_argument("--kept", action="store_true", help="judge the curves in the folder again")
    parser.add_argument("--page", type=Path, help="write tables into this page, and pictures into its folder")
    chosen = parser.parse_args()
    folder: Path = chosen.folder.resolve()
    if not chosen.kept:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / CIRCUMSTANCES).write_text(circumstances(ROOT).model_dump_json(), encoding="utf-8")
        plan = Plan(chosen.hours, folder, chosen.nodes, chosen.deletions, (chosen.program,))
        asyncio.run(soaked(plan))
    said = where(Circumstances.model_validate_json((folder / CIRCUMSTANCES).read_text(encoding="utf-8")))
    curves = Soaked.of(folder)
    print("\n".join(section(curves, said, "pictures")))
    drawn(curves, folder / "pictures")
    if chosen.page:
        drawn(curves, chosen.page.parent / "pictures")
        written(curves, said, chosen.page, "pictures")
    return 1 if curves.problems() else 0


if __name__ == "__main__":
    sys.exit(main())
