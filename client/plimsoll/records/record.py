"""An Eviction record as last written."""

from datetime import datetime
from typing import Any

from msgspec import Struct

from plimsoll.api.v1alpha1.eviction import EvictionSpec, EvictionStatus
from plimsoll.api.v1alpha1.eviction_naming import record_labels
from plimsoll.api.v1alpha1.eviction_phases import FINISHED, Phase
from plimsoll.api.v1alpha1.rebalancing import PlannerName
from plimsoll.model.names import RecordKey, record_key
from plimsoll.planning.limits import workload_key

#: Phases in which the pod leaves, or has been asked to.
MOVING = frozenset((Phase.EVICTING, Phase.EVICTED, Phase.SURGING))

#: The reason of a record that says Evicted and whose pod stays.
STILL_THERE = "StillThere"

#: The strategy in records of victims of preemption.
PREEMPTION = "DefaultPreemption"


def recorded_workload(spec: EvictionSpec) -> str:
    """The key of the workload in a record: a rollout changes the owner, all else leaves it as it is."""
    is_rollout = spec.surge is not None and spec.surge.replicas is None
    owner = spec.surge if is_rollout else spec.owner
    return workload_key(spec.pod.namespace, spec.pod.uid if owner is None else owner.uid)


class Record(Struct, frozen=True):
    """One record as last written.

    Attributes:
        namespace: Namespace of the pod and the record.
        name: The record's name.
        spec: The decision.
        status: The progress.
        created: Seconds since the epoch, by the API server's clock.
        announced: When phase Evicting was written, by the API server's clock; None if that is not known.
        uid: The object's uid: a record that is deleted may be created again under its name.
    """

    namespace: str
    name: str
    spec: EvictionSpec
    status: EvictionStatus
    created: float
    announced: datetime | None = None
    uid: str = ""

    @property
    def key(self) -> RecordKey:
        """``namespace/name``."""
        return record_key(self.namespace, self.name)

    @property
    def document(self) -> dict[str, Any]:
        """The custom resource to create."""
        spec = self.spec
        labels = record_labels(
            policy=spec.policy,
            strategy=spec.strategy,
            from_node=spec.from_node,
            owner_kind=spec.owner.kind if spec.owner else "",
            owner_name=spec.owner.name if spec.owner else "",
            bundle=spec.bundle.name if spec.bundle else "",
        )
        return {
            "apiVersion": "plimsoll.dev/v1alpha1",
            "kind": "Eviction",
            "metadata": {"name": self.name, "namespace": self.namespace, "labels": labels},
            # Without defaults: an older operator refuses a field that it does not know, whatever it says.
            "spec": spec.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True),
            "status": self.status.model_dump(mode="json", by_alias=True, exclude_none=True),
        }

    @property
    def phase(self) -> Phase | None:
        """The phase that it has reached."""
        return self.status.phase

    @property
    def is_forecast(self) -> bool:
        """Whether the target is not proven; records of earlier versions name only the planner."""
        return self.spec.forecast or self.spec.planner is PlannerName.UPSTREAM

    @property
    def came_true(self) -> bool | None:
        """Whether the replacement is on the forecast node or one as good; None if nothing is known of it."""
        landed = self.status.replacement
        if not self.spec.forecast or self.spec.target_node is None or landed is None or landed.node is None:
            return None
        return landed.node in (self.spec.target_node, *self.spec.equal_targets)

    @property
    def landing(self) -> str:
        """Where the replacement of a forecast is: ``expected``, ``equal`` or ``other``; "" if not known."""
        if self.came_true is None:
            return ""
        landed = self.status.replacement
        is_exact = landed is not None and landed.node == self.spec.target_node
        return "expected" if is_exact else "equal" if self.came_true else "other"

    @property
    def is_moving(self) -> bool:
        """Whether the pod leaves, or has been asked to."""
        return self.phase in MOVING

    @property
    def reference(self) -> dict[str, str]:
        """A reference to the record, for events."""
        return {
            "apiVersion": "plimsoll.dev/v1alpha1",
            "kind": "Eviction",
            "namespace": self.namespace,
            "name": self.name,
            "uid": self.uid,
        }

    @property
    def is_finished(self) -> bool:
        """Whether it will not change any more."""
        return self.phase in FINISHED
