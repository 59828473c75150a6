"""VerticalPodAutoscaler (autoscaling.k8s.io/v1), reduced to what its admission makes of a new pod.

Source: kubernetes/autoscaler, ``vertical-pod-autoscaler/pkg/apis/autoscaling.k8s.io/v1/types.go``.
"""

from collections.abc import Iterator

import msgspec

from plimsoll.model.kinds.metadata import ApiObject
from plimsoll.model.kinds.pod import Quantities
from plimsoll.model.quantity import QuantityError, nanos
from plimsoll.model.read_only_dict import NO_ENTRIES

#: The update mode, and the mode of a container, in which nothing is changed.
OFF = "Off"

#: Limits keep their proportion to requests.
REQUESTS_AND_LIMITS = "RequestsAndLimits"

#: The container name of the policy for all containers without one of their own.
ANY_CONTAINER = "*"


class ScaledController(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The topmost controller of the pods: a Deployment, not its ReplicaSets."""

    kind: str = ""
    name: str = ""


class UpdatePolicy(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """When recommendations are applied: in every mode but Off, new pods are created with them."""

    update_mode: str = "Recreate"


class ContainerPolicy(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """What may be changed of a container, and within which amounts."""

    container_name: str = ""
    mode: str = "Auto"
    min_allowed: Quantities = NO_ENTRIES
    max_allowed: Quantities = NO_ENTRIES
    controlled_resources: tuple[str, ...] | None = None
    controlled_values: str = REQUESTS_AND_LIMITS


class ResourcePolicy(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The policies of the containers."""

    container_policies: tuple[ContainerPolicy, ...] = ()


class AutoscalerSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Which pods it concerns, and what it may do."""

    target_ref: ScaledController | None = None
    update_policy: UpdatePolicy = UpdatePolicy()
    resource_policy: ResourcePolicy = ResourcePolicy()


class ContainerRecommendation(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The requests that a container should have."""

    container_name: str = ""
    target: Quantities = NO_ENTRIES


class Recommendation(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The recommendations of the containers."""

    container_recommendations: tuple[ContainerRecommendation, ...] = ()


class AutoscalerStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """What its recommender has found."""

    recommendation: Recommendation = Recommendation()


class VerticalPodAutoscaler(ApiObject, frozen=True, kw_only=True, rename="camel", gc=False):
    """Sets the requests of a controller's pods."""

    spec: AutoscalerSpec = AutoscalerSpec()
    status: AutoscalerStatus = AutoscalerStatus()

    def unreadable(self) -> Iterator[str]:
        """A sentence for each amount that is not a quantity."""
        recommended = self.status.recommendation.container_recommendations
        amounts = [(each.container_name, "target", each.target) for each in recommended]
        for each in self.spec.resource_policy.container_policies:
            amounts.append((each.container_name, "minAllowed", each.min_allowed))
            amounts.append((each.container_name, "maxAllowed", each.max_allowed))
        for container, field, quantities in amounts:
            for name, quantity in quantities.items():
                try:
                    nanos(quantity)
                except QuantityError as exc:
                    yield f"{name} of {field} of container {container} cannot be read: {exc}"
