"""The table of situations, and its place on a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from group_scenarios.steps import Situation

#: The schedulers.
COLUMNS = ("kube-scheduler", "Plimsoll")

#: What stands on the page before and after the table.
BEGIN, END = "<!-- table -->", "<!-- end of table -->"


def table(chosen: Mapping[str, tuple[Situation, ...]], results: Mapping[str, Mapping[str, str]]) -> str:
    """The table: a tick where a situation goes as its title says, else what was seen."""
    rows = [f"| Situation and outcome | {' | '.join(results)} |", "| --- |" + " --- |" * len(results)]
    for part, situations in chosen.items():
        rows.append(f"| **{part}** |" + " |" * len(results))
        for each in situations:
            cells = [found[each.title] or "✓" for found in results.values()]
            mark = "" if each.source else " *"
            rows.append(f"| {each.title}{mark} | {' | '.join(cells)} |")
    return "\n".join(rows)


def with_table(page: str, text: str) -> str:
    """The page with this table in place of its own."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{text}\n\n{END}{after}"
