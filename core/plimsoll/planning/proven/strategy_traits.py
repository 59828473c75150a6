"""Says how a policy's strategies are judged: what each of them moves pods for."""

from collections.abc import Mapping, Sequence
from typing import Self

from msgspec import Struct

from plimsoll.framework.descheduling.strategy import (
    AsksForGain,
    MendsSpread,
    ServesPending,
    Strategy,
    StrategyKind,
    wants_even_spread,
    wants_restart,
)


class StrategyTraits(Struct, frozen=True):
    """Names of a policy's strategies by what they move pods for.

    Attributes:
        asking_gain: Strategies that set the least gain of a move themselves.
        restarting: Those that want a fresh pod: its own node is as good as another.
        serving_pending: Those that make room for pending pods.
        balancing: Those that run in the Balance phase.
        by_use: Those that move pods because of the use of nodes; pods of others leave a place that is wrong.
    """

    asking_gain: Mapping[str, AsksForGain]
    restarting: frozenset[str]
    serving_pending: frozenset[str]
    balancing: frozenset[str]
    by_use: frozenset[str]

    @classmethod
    def of(cls, strategies: Sequence[Strategy]) -> Self:
        """The traits of these strategies."""
        serving = frozenset(each.name for each in strategies if isinstance(each, ServesPending))
        balancing = frozenset(each.name for each in strategies if each.kind is StrategyKind.BALANCE)
        spreading = {
            each.name for each in strategies if wants_even_spread(each) or isinstance(each, MendsSpread)
        }
        return cls(
            {each.name: each for each in strategies if isinstance(each, AsksForGain)},
            frozenset(each.name for each in strategies if wants_restart(each)),
            serving,
            balancing,
            balancing - serving - spreading,
        )
