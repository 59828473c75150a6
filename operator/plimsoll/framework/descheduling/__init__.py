"""What authors of strategies use, in addition to :mod:`plimsoll.framework`."""

from plimsoll.framework.descheduling.context import (
    Measurements,
    NodeClasses,
    Planner,
    Sample,
    StrategyContext,
    considered_nodes,
)
from plimsoll.framework.descheduling.strategy import (
    Beneficiary,
    Bundle,
    Evictor,
    Refusal,
    Strategy,
    StrategyKind,
    Verdict,
)
from plimsoll.framework.errors import CannotJudgeError
from plimsoll.framework.extension_points import Candidate

__all__ = [
    "Beneficiary",
    "Bundle",
    "Candidate",
    "CannotJudgeError",
    "Evictor",
    "Measurements",
    "NodeClasses",
    "Planner",
    "Refusal",
    "Sample",
    "Strategy",
    "StrategyContext",
    "StrategyKind",
    "Verdict",
    "considered_nodes",
]
