"""The API for authors of strategies, in addition to :mod:`plimsoll.framework`."""

from plimsoll.framework.descheduling.context import Evictor, StrategyContext, considered_nodes
from plimsoll.framework.descheduling.measurements import Measurements, NodeClasses, Planner, Sample
from plimsoll.framework.descheduling.proposals import (
    Beneficiary,
    Bundle,
    Candidate,
    Candidates,
    Refusal,
    Verdict,
)
from plimsoll.framework.descheduling.strategy import Strategy, StrategyKind
from plimsoll.framework.errors import CannotJudgeError
from plimsoll.model.kinds.pod import PodCondition
from plimsoll.model.kinds.pod_group import group_key
from plimsoll.model.priority import PREFER_NO_EVICTION, low_to_high

__all__ = [
    "PREFER_NO_EVICTION",
    "Beneficiary",
    "Bundle",
    "Candidate",
    "Candidates",
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
