"""Driving one strategy: each candidate gets its verdict; what the strategy raises is named, once, here."""

from collections.abc import Callable
from contextlib import nullcontext

from plimsoll.engine.runtime import calling
from plimsoll.engine.strategy_timer import TIMER
from plimsoll.framework.strategy import Proposal, Strategy, Verdict
from plimsoll.framework.strategy_context import StrategyContext

Judge = Callable[[Proposal], Verdict | None]
"""Says what becomes of a proposal; None wants no more of them."""


def run_strategy(strategy: Strategy, context: StrategyContext, judge: Judge) -> None:
    """Put every candidate of a strategy before the judge, until either has enough.

    Raises:
        PluginError: The strategy, or an evictor that it asked, raised; what was judged before stands.
    """
    timer = TIMER.get()
    with timer.timed(strategy.name) if timer is not None else nullcontext():
        _run(strategy, context, judge)


def _run(strategy: Strategy, context: StrategyContext, judge: Judge) -> None:
    with calling(strategy.name, strategy.kind):
        candidates = strategy.candidates(context)
        candidate = next(candidates, None)
    while candidate is not None:
        verdict = judge(candidate)
        if verdict is None:
            candidates.close()
            return
        with calling(strategy.name, strategy.kind):
            try:
                candidate = candidates.send(verdict)
            except StopIteration:
                return
