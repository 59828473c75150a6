"""Record is one Eviction record as last written."""

from dataclasses import dataclass
from datetime import datetime

from plimsoll.api.v1alpha1.eviction import EvictionSpec, EvictionStatus
from plimsoll.api.v1alpha1.eviction_phases import FINISHED, Phase
from plimsoll.api.v1alpha1.rebalancing import PlannerName


@dataclass(frozen=True, slots=True)
class Record:
    """One record as last written.

    Attributes:
        namespace: Of the pod and the record.
        name: Of the record.
        spec: What was decided.
        status: How far it has come.
        created: Seconds since the epoch, by the API server's clock.
        announced: When phase Evicting was written, by the API server's clock; None if that is not known.
    """

    namespace: str
    name: str
    spec: EvictionSpec
    status: EvictionStatus
    created: float
    announced: datetime | None = None

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"

    @property
    def phase(self) -> Phase | None:
        """How far it has come."""
        return self.status.phase

    @property
    def is_forecast(self) -> bool:
        """Whether nothing vouches for the target; records of earlier versions only name the planner."""
        return self.spec.forecast or self.spec.planner is PlannerName.UPSTREAM

    @property
    def is_finished(self) -> bool:
        """Whether nothing more will happen to it."""
        return self.phase in FINISHED
