"""Driving one strategy: each candidate gets its verdict; what the strategy raises is named, once, here."""

from collections.abc import Callable

from plimsoll.engine.runtime import calling
from plimsoll.framework.strategy import Candidates, Proposal, Strategy, Verdict
from plimsoll.framework.strategy_context import StrategyContext

Judge = Callable[[Proposal], Verdict | None]
"""Says what becomes of a proposal; None wants no more of them."""


def run_strategy(
    strategy: Strategy,
    context: StrategyContext,
    judge: Judge,
    source: Callable[[StrategyContext], Candidates] | None = None,
) -> None:
    """Put every candidate of a strategy before the judge, until either has enough.

    Args:
        strategy: What is run.
        context: What it sees.
        judge: Answers its candidates.
        source: Yields the candidates; left out, ``strategy.candidates``.

    Raises:
        PluginError: The strategy, or an evictor that it asked, raised; what was judged before stands.
    """
    with calling(strategy.name, strategy.kind):
        candidates = (source or strategy.candidates)(context)
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
