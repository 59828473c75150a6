"""Runs one strategy: returns a verdict for each candidate, judges what it yields or raises, and times it.

The caller provides the clock; the planner itself reads none.
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, TypeVar

from plimsoll.engine.plugin_calls import calling
from plimsoll.framework import PluginError, PodInfo
from plimsoll.framework.descheduling.context import StrategyContext
from plimsoll.framework.descheduling.proposals import Bundle, Candidate, Candidates, Proposal, Verdict
from plimsoll.framework.descheduling.strategy import Strategy
from plimsoll.framework.plugin_answers import shown

Judge = Callable[[Proposal], Verdict | None]
"""Says what becomes of a proposal; None wants no more of them."""


#: Times nothing.
UNTIMED = nullcontext()


class StrategyTimer:
    """Seconds by strategy, including the planner's verdicts on its candidates.

    Several runs of a strategy in one plan are summed. A run that another strategy's candidate causes counts
    as the other's time.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.seconds: dict[str, float] = {}
        self._clock = clock
        self._is_running = False

    def timed(self, strategy: str) -> AbstractContextManager[None]:
        """Add the time within the context to the strategy."""
        return UNTIMED if self._is_running else self._timed(strategy)

    @contextmanager
    def _timed(self, strategy: str) -> Iterator[None]:
        self._is_running, began = True, self._clock()
        try:
            yield
        finally:
            self._is_running = False
            self.seconds[strategy] = self.seconds.get(strategy, 0.0) + self._clock() - began


T = TypeVar("T")

#: Seconds of processor time that the strategies and the planner of one plan may take together.
PLAN_BUDGET_S = 120.0


class PlanBudget:
    """Bounds the processor time of one plan, in one call or several; asked before each candidate.

    Args:
        cpu_s: Returns the processor time of the calling thread, in seconds.

    Attributes:
        used_s: Seconds that the calls that have ended took.
    """

    def __init__(self, cpu_s: Callable[[], float]) -> None:
        self.used_s = 0.0
        self._cpu_s = cpu_s
        self._began = 0.0

    def within(self, function: Callable[[], T]) -> T:
        """Call a function that makes the plan or a part of it; its strategies have what is left."""
        token, self._began = BUDGET.set(self), self._cpu_s()
        try:
            return function()
        finally:
            self.used_s += self._cpu_s() - self._began
            BUDGET.reset(token)

    def ask(self, strategy: Strategy) -> None:
        """Before the next candidate of a strategy.

        Raises:
            PluginError: The plan has taken too much; earlier verdicts stand.
        """
        if self.used_s + self._cpu_s() - self._began > PLAN_BUDGET_S:
            problem = (
                f"given up, as the plan took more than {PLAN_BUDGET_S:g} s of processor time; the moves found"
                " before are made, and the next run tries again"
            )
            raise PluginError(strategy.name, strategy.kind, problem)


#: The budget of the plan that the present thread makes, or None: plans for people have none.
BUDGET: ContextVar[PlanBudget | None] = ContextVar("BUDGET", default=None)

#: The timer of the plan in the present context, or None. A thread that makes the plan has a copy of the
#: context, and so the same timer.
TIMER: ContextVar[StrategyTimer | None] = ContextVar("TIMER", default=None)


def run_strategy(
    strategy: Strategy,
    context: StrategyContext,
    judge: Judge,
    source: Callable[[StrategyContext], Candidates] | None = None,
) -> None:
    """Pass every candidate of a strategy to the judge, until either ends.

    ``source`` yields other candidates than ``strategy.candidates``.

    Raises:
        PluginError: The strategy, or an evictor that it called, raised; earlier verdicts stand.
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
    """Yield the candidates of a strategy; the caller sends back each verdict, None ends the strategy.

    Raises:
        PluginError: The strategy, or an evictor that it called, raised, or yielded what is no proposal, or
            the plan has taken too much processor time; earlier verdicts stand.
    """
    budget = BUDGET.get()
    if budget is not None:
        budget.ask(strategy)
    call = calling(strategy.name, strategy.kind)
    with _timed(strategy), call:
        candidates = (source or strategy.candidates)(context)
        try:
            candidate = next(candidates)
        except StopIteration:
            return
    while True:
        if budget is not None:
            budget.ask(strategy)
        verdict = yield _judged(candidate, strategy, context)
        with _timed(strategy), call:
            if verdict is None:
                candidates.close()
                return
            try:
                candidate = candidates.send(verdict)
            except StopIteration:
                return


def _judged(proposal: Proposal, strategy: Strategy, context: StrategyContext) -> Proposal:
    """What a strategy yielded; PluginError if it is no proposal, or names a node that there is not."""
    pods: Any = proposal.candidates if isinstance(proposal, Bundle) else (proposal,)
    if not isinstance(pods, tuple) or not pods:
        problem = f"proposed {shown(proposal)}; a Bundle has at least one candidate, in a tuple"
        raise PluginError(strategy.name, strategy.kind, problem)
    for each in pods:
        problem = _problem(each, context)
        if problem:
            raise PluginError(strategy.name, strategy.kind, problem)
    return proposal


def _problem(each: Any, context: StrategyContext) -> str:
    """What is wrong with a candidate, "" if nothing is."""
    if not isinstance(each, Candidate) or not isinstance(each.pod, PodInfo):
        return f"proposed {shown(each)}; expected a Candidate with its PodInfo"
    texts: Any = each  # whatever a strategy of another author has set
    if not (isinstance(texts.reason, str) and isinstance(texts.node, str) and isinstance(texts.target, str)):
        return f"proposed {each.pod.key} with a node, reason or target that is no text"
    if each.node not in context.cluster.rows:
        return f"proposed {each.pod.key} on {shown(each.node)}, and there is no such node"
    return ""


def _timed(strategy: Strategy) -> AbstractContextManager[None]:
    timer = TIMER.get()
    return timer.timed(strategy.name) if timer is not None else UNTIMED
