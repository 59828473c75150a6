"""Writes what a move does at each event: ``python -m pages.moves docs/reference/moves.md``.

From the tables of the move machine and the first sentences of its transitions. ``make docs`` writes the page,
and a test fails when it lags.
"""

import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from plimsoll.rebalancing.moves import eviction, preparation
from plimsoll.rebalancing.moves.state import MoveStage
from plimsoll.rebalancing.moves.transition import LATE, Begin, MoveTable, Transition, nothing
from plimsoll.rebalancing.surges import transitions as surges

TABLES = (LATE, preparation.TABLE, eviction.TABLE, surges.TABLE)

#: What a move waits for in each stage, and the phase of its record.
STAGES: Mapping[MoveStage, str] = {
    MoveStage.NEW: "The move is planned; nothing else is known about it.",
    MoveStage.PROPOSED: "Waits for a person. Record: Planned, the policy's mode Approve.",
    MoveStage.WAITING: "Waits for its turn: for earlier moves of its workload, its closed node, its bundle.",
    MoveStage.OPENING: "Waits for the API server's answer to the creation of the record.",
    MoveStage.CHECKING: "Waits for the planner's answer about the present cluster. Record: Planned.",
    MoveStage.COMMITTING: "Waits for the answer to the write that announces the move; sends nothing before.",
    MoveStage.READY: "Waits until all moves of its group are announced, then for its turn. Record: Evicting.",
    MoveStage.EVICTING: "Waits for the Eviction API, or for the component that carries the eviction out.",
    MoveStage.SURGING: "Waits for the replacement to be ready and the old pod to leave. Record: Surging.",
    MoveStage.REVERTING: "Waits for the Deployment's template to be what it was. Record: Surging.",
    MoveStage.REPLACING: "Waits for the replacement. Record: Evicted.",
    MoveStage.LEAVING: "A victim of preemption: waits for the pod to leave; no replacement is expected.",
    MoveStage.CLOSED: "The move has ended: Settled, Returned, Blocked, Failed or Cancelled.",
}

HEAD = """# The life of a move

What happens to a move at each event, by the stage that it is in. The events and the instructions are
described in the code: `rebalancing/moves/events.py` and `instructions.py`. What follows when the
operator starts again is in [high availability](../high-availability.md). An event that no list of a
stage names cannot happen there: the operator counts and logs it, and tests fail.

Written by `make docs` from the code: change that.
"""


def sentence(transition: Transition | Begin) -> str:
    """The first sentence of what a transition says of itself.

    Raises:
        ValueError: It says nothing.
    """
    if not transition.__doc__:
        raise ValueError(f"{transition.__module__}.{transition.__name__} needs a docstring")
    first = transition.__doc__.partition("\n\n")[0]
    return re.sub(r"``(.+?)``", r"`\1`", " ".join(first.split()))


def section(stage: MoveStage, tables: tuple[MoveTable, ...] = TABLES) -> Iterator[str]:
    """The lines about one stage."""
    events_of: defaultdict[Transition, list[str]] = defaultdict(list)
    for table in tables:
        for (at, event), transition in table.transitions.items():
            if at is stage:
                events_of[transition].append(event.__name__)
    late = sorted(events_of.pop(nothing, []))
    yield f"## {stage.name.capitalize()}\n"
    yield STAGES[stage] + "\n"
    if stage is MoveStage.COMMITTING:
        yield "`RecordAnswered`: what follows depends on how the pod is made to leave.\n"
        for table in tables:
            yield from (f"- {way.value}: {sentence(begin)}" for way, begin in table.begins.items())
        yield ""
    if events_of:
        yield "| Event | What follows |\n| --- | --- |"
        for transition, names in events_of.items():
            yield f"| {', '.join(f'`{name}`' for name in sorted(names))} | {sentence(transition)} |"
        yield ""
    if late:
        yield f"May arrive late or twice, and changes nothing: {', '.join(f'`{name}`' for name in late)}.\n"


def page() -> str:
    """The page in Markdown."""
    return HEAD + "\n" + "\n".join(line for stage in STAGES for line in section(stage)).rstrip() + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
