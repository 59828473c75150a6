"""Strategies and extenders that misbehave, each in one way."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from misbehaving.plugins import BOOM, raising, returning
from plimsoll.framework import NoArgs
from plimsoll.framework.descheduling import Bundle, Candidate, StrategyKind


def a_strategy(name: str, candidates: Callable[..., Any]) -> Any:
    """A class that yields what this function returns or yields."""
    members = {
        "name": name,
        "kind": StrategyKind.DESCHEDULE,
        "args_model": NoArgs,
        "__init__": lambda _self, _args: None,
        "candidates": candidates,
    }
    return type(name, (), members)


def yielding(made: Callable[[Any], Any]) -> Callable[..., Any]:
    """Candidates: what is made of each placed pod."""

    def candidates(_self: Any, context: Any) -> Iterable[Any]:
        for node in context.nodes:
            for pod in context.pods(node):
                yield made(pod)

    return candidates


STRATEGIES = (
    a_strategy("strategy-raises", raising(BOOM)),
    a_strategy("strategy-exits", raising(SystemExit(3))),
    a_strategy("strategy-returns-none", returning(None)),
    a_strategy("strategy-returns-a-list", returning([])),
    a_strategy("strategy-yields-none", yielding(lambda _: None)),
    a_strategy("strategy-yields-a-pod", yielding(lambda pod: pod)),
    a_strategy("strategy-yields-a-number", yielding(lambda pod: Candidate(pod, "n0", 7))),  # type: ignore[arg-type] # what it is about
    a_strategy("strategy-yields-no-bundle", yielding(lambda _: Bundle(()))),
    a_strategy("strategy-names-no-node", yielding(lambda pod: Candidate(pod, "ghost", "why"))),
    a_strategy("strategy-relabels", yielding(lambda pod: pod.labels.clear())),
    a_strategy("strategy-forgets-budgets", lambda _, context: context.objects.budgets.clear()),
)

#: What extenders answer to the question which nodes pass.
ANSWERS = {
    "extender-answers-a-list": b"[]",
    "extender-answers-a-number": b'{"NodeNames": 7}',
    "extender-answers-numbers": b'{"NodeNames": [1, 2]}',
    "extender-answers-no-node": b'{"NodeNames": ["ghost"]}',
    "extender-answers-nothing": b"",
    "extender-answers-bytes": b"\xff\xfe",
}
