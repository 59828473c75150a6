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
    Candidate,
    Evictor,
    Refusal,
    Strategy,
    StrategyKind,
    Verdict,
)
from plimsoll.framework.errors import CannotJudgeError
from plimsoll.model.kinds.pod import PodCondition
from plimsoll.model.kinds.pod_group import group_key
from plimsoll.model.priority import PREFER_NO_EVICTION, low_to_high

__all__ = [
    "PREFER_NO_EVICTION",
    "Beneficiary",
    "Bundle",
    "Candidate",
    "CannotJudgeError",
    "Evictor",
    "Measurements",
    "NodeClasses",
    "Planner",
    "PodCondition",
    "Refusal",
    "Sample",
    "Strategy",
    "StrategyContext",
    "StrategyKind",
    "Verdict",
    "considered_nodes",
    "group_key",
    "low_to_high",
]
