"""Drives one strategy: returns a verdict for each candidate, and attributes its exceptions."""

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, nullcontext

from plimsoll.engine.plugin_calls import calling
from plimsoll.framework.descheduling.context import StrategyContext
from plimsoll.framework.descheduling.proposals import Candidates, Proposal, Verdict
from plimsoll.framework.descheduling.strategy import Strategy
from plimsoll.planning.strategy_timer import TIMER

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
    with _timed(strategy):
        asking = proposals(strategy, context, source)
        proposal = next(asking, None)
        while proposal is not None:
            try:
                proposal = asking.send(judge(proposal))
            except StopIteration:
                return


def proposals(
    strategy: Strategy,
    context: StrategyContext,
    source: Callable[[StrategyContext], Candidates] | None = None,
) -> Generator[Proposal, Verdict | None, None]:
    """Yield the candidates of a strategy; each is answered with its verdict, None ends the strategy.

    Args:
        strategy: Who is named when something raises.
        context: The cluster.
        source: What yields proposals in place of the strategy's candidates.

    Raises:
        PluginError: The strategy, or an evictor that it asked, raised; what was judged before stands.
    """
    with _timed(strategy), calling(strategy.name, strategy.kind):
        candidates = (source or strategy.candidates)(context)
        candidate = next(candidates, None)
    while candidate is not None:
        verdict = yield candidate
        if verdict is None:
            candidates.close()
            return
        with _timed(strategy), calling(strategy.name, strategy.kind):
            try:
                candidate = candidates.send(verdict)
            except StopIteration:
                return


def _timed(strategy: Strategy) -> AbstractContextManager[None]:
    timer = TIMER.get()
    return timer.timed(strategy.name) if timer is not None else nullcontext()
