"""The API for authors of strategies, in addition to :mod:`plimsoll.framework`."""

from plimsoll.framework.descheduling.context import Evictor as Evictor
from plimsoll.framework.descheduling.context import StrategyContext as StrategyContext
from plimsoll.framework.descheduling.context import considered_nodes as considered_nodes
from plimsoll.framework.descheduling.measurements import Measurements as Measurements
from plimsoll.framework.descheduling.measurements import NodeClasses as NodeClasses
from plimsoll.framework.descheduling.measurements import Planner as Planner
from plimsoll.framework.descheduling.measurements import Sample as Sample
from plimsoll.framework.descheduling.proposals import Beneficiary as Beneficiary
from plimsoll.framework.descheduling.proposals import Bundle as Bundle
from plimsoll.framework.descheduling.proposals import Candidate as Candidate
from plimsoll.framework.descheduling.proposals import Candidates as Candidates
from plimsoll.framework.descheduling.proposals import Refusal as Refusal
from plimsoll.framework.descheduling.proposals import Verdict as Verdict
from plimsoll.framework.descheduling.strategy import Strategy as Strategy
from plimsoll.framework.descheduling.strategy import StrategyKind as StrategyKind
from plimsoll.framework.errors import CannotJudgeError as CannotJudgeError
from plimsoll.model.kinds.pod import PodCondition as PodCondition
from plimsoll.model.kinds.pod_group import group_key as group_key
from plimsoll.model.priority import PREFER_NO_EVICTION as PREFER_NO_EVICTION
from plimsoll.model.priority import low_to_high as low_to_high
