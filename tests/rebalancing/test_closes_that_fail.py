"""Closing and opening a node that fail in every way, and the same bundle once more afterwards.

The laws hold for each pair of troubles: nothing is evicted from a node that the scheduler does not see
closed; a node whose bundle is over is opened within two looks, as soon as the API server takes writes again;
and the next run empties the node as if nothing had been.
"""

from __future__ import annotations

import asyncio

import pytest

from plimsoll.model.taints import is_closed
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.rebalancing.closed_nodes import LOOK_AFTER_S, SEEN_S
from plimsoll.testing.fakes import FakeNodeCloser
from rebalancing.scene import a_policy
from rebalancing.test_closed_nodes import EMPTYING, Consolidation

#: Ends of a write: its answer, None for an error, and whether it takes effect where the watch shows it.
ENDS: dict[str, tuple[WriteResult | None, bool]] = {
    "done": (WriteResult(WriteOutcome.DONE), True),
    "done, and the watch is late": (WriteResult(WriteOutcome.DONE), False),
    "refused": (WriteResult(WriteOutcome.REFUSED, "no"), False),
    "conflict": (WriteResult(WriteOutcome.CONFLICT, "changed"), False),
    "no answer, and not done": (WriteResult(WriteOutcome.UNKNOWN, "lost"), False),
    "no answer, and done": (WriteResult(WriteOutcome.UNKNOWN, "lost"), True),
    "breaks, and not done": (None, False),
    "breaks, and done": (None, True),
}
#: The node is closed, and a budget allows no eviction.
BLOCKED = "done, and nothing may leave"
REOPENS = ("done", "refused", "no answer, and done", "breaks, and not done")


class TroubledCloser(FakeNodeCloser):
    """Ends each write as ``ends`` has it for its verb; well without an entry."""

    def __init__(self) -> None:
        super().__init__()
        self.ends: dict[str, str] = {}
        self.late: list[tuple[str, str]] = []

    def _do(self, verb: str, node: str) -> WriteResult:
        answer, has_effect = ENDS[self.ends.get(verb, "done")]
        if has_effect:
            self.done.append((verb, node))
            self.when_done(verb, node)
        elif answer is not None and answer.is_done:
            self.late.append((verb, node))
        if answer is None:
            raise ValueError("an odd answer")
        return answer


@pytest.mark.parametrize("reopens", REOPENS)
@pytest.mark.parametrize("closes", [*ENDS, BLOCKED])
async def test_whatever_becomes_of_a_close_the_node_is_opened_and_emptied_the_next_time(
    closes: str, reopens: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rebalancing.scene.FakeNodeCloser", TroubledCloser)
    scene = Consolidation()
    closer = scene.closer
    assert isinstance(closer, TroubledCloser)
    closer.ends = {"close": closes if closes in ENDS else "done", "reopen": reopens}
    seen: list[bool] = []
    scene.evictor.when_done = lambda _: seen.append(is_closed(scene.present["idle"]))
    if closes == BLOCKED:
        scene.evictor.answers = [WriteResult(WriteOutcome.BLOCKED, "no", "default/api")]

    async with scene.running(a_policy(**EMPTYING)):  # type: ignore[arg-type] # fields as in the API
        first = asyncio.create_task(scene.run())
        await scene.clock.advance(SEEN_S + 1)
        await first
        is_emptied = closes == "done"
        assert len(scene.evictor.evicted) == (2 if is_emptied else 0)
        closer.ends = {}
        for verb, node in closer.late:  # the watch catches up
            scene.told(verb, node)
        await scene.clock.advance(2 * LOOK_AFTER_S + 1)
        assert is_closed(scene.present["idle"]) is is_emptied
        if not is_emptied:
            await scene.clock.advance(600)
            await scene.run()
            assert sorted(scene.evictor.evicted) == ["api-1", "job-1"]

    assert all(seen)
