"""HorizontalPodAutoscalers (autoscaling/v2), as far as it matters whose replicas they decide on."""

import msgspec

from plimsoll.model.kinds.metadata import ApiObject
from plimsoll.model.kinds.scaled_workloads import is_scaled


class ScaleTarget(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The object whose replicas are decided on, in the same namespace."""

    api_version: str = ""
    kind: str = ""
    name: str = ""


class HorizontalPodAutoscalerSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Without the numbers and metrics by which it decides."""

    scale_target_ref: ScaleTarget = ScaleTarget()


class HorizontalPodAutoscaler(ApiObject, frozen=True, kw_only=True):
    """Raises and lowers the replicas of an object."""

    spec: HorizontalPodAutoscalerSpec = HorizontalPodAutoscalerSpec()

    @property
    def scaled(self) -> str:
        """What it scales, as ``Kind namespace/name``; "" if no surge scales that kind."""
        target = self.spec.scale_target_ref
        is_known = is_scaled(target.api_version, target.kind)
        return f"{target.kind} {self.namespace}/{target.name}" if is_known else ""
