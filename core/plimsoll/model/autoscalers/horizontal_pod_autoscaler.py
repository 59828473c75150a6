"""HorizontalPodAutoscalers (autoscaling/v2), as far as it matters whose replicas they decide on."""

import msgspec

from plimsoll.model.kinds.metadata import ApiObject


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
    def deployment(self) -> str:
        """The Deployment that it scales, as ``namespace/name``; "" if it scales another kind."""
        target = self.spec.scale_target_ref
        is_deployment = target.kind == "Deployment" and target.api_version.startswith("apps/")
        return f"{self.namespace}/{target.name}" if is_deployment else ""
