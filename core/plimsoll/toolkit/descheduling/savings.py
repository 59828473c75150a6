"""Judges whether emptying a node saves enough money for the restarts that it causes.

Formula::

    worth it = price of the node per hour >= least saving per hour * restarts

Units: currency an hour, as nodes state it (:mod:`plimsoll.model.prices`). Edges: a node without a price, or
in another currency, is not worth it.
"""

from msgspec import Struct

from plimsoll.framework import Node
from plimsoll.model.counted import counted
from plimsoll.model.prices import Price, price_of, saving_of

#: Differences below this are rounding errors.
ROUNDING = 1e-9


class LeastSaving(Struct, frozen=True):
    """What one restart must save.

    Attributes:
        text: As in the arguments, such as ``1 EUR/day``.
    """

    text: str
    price: Price

    @classmethod
    def of(cls, text: str) -> "LeastSaving":
        """Read from the arguments.

        Raises:
            ValueError: It cannot be read.
        """
        return cls(text, saving_of(text))

    def by_restart(self, node: Node, restarts: int) -> float:
        """What emptying the node saves per hour for each restart, 0 without a price."""
        price = price_of(node)
        return 0.0 if price is None else price.per_hour / max(restarts, 1)

    def objection(self, node: Node, restarts: int) -> str:
        """Why emptying the node saves too little, as a clause; "" if it saves enough."""
        price, least = price_of(node), self.price
        if price is None:
            return f"its price is not known, and minSavingPerRestart is {self.text}"
        if price.currency != least.currency:
            return f"its price is in {price.currency}, and minSavingPerRestart is in {least.currency}"
        asked = Price(least.per_hour * restarts, least.currency)
        if price.per_hour >= asked.per_hour - ROUNDING:
            return ""
        times = counted(restarts, "restart")
        return f"it saves {price} an hour, and {times} must save {asked} by minSavingPerRestart"
