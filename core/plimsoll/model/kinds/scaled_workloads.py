"""Rollouts of Argo and CloneSets of OpenKruise, read as Deployments for surges by one replica more.

Both have the subresource ``scale``. The ReplicaSets of a Rollout are those of Kubernetes, and a CloneSet
deletes in the same order: pods that are not ready, then those with the least ``pod-deletion-cost``, then by
its own ranks. Pods with the label ``apps.kruise.io/specified-delete`` are deleted immediately, whatever the
number of replicas is, so that a CloneSet would start a further one.

Source: argo-rollouts (``pkg/apis/rollouts/v1alpha1/types.go``, ``utils/conditions``), OpenKruise
(``apis/apps/v1alpha1/cloneset_types.go``, ``pkg/controller/cloneset/utils/pod_sorter.go`` and
``sync/cloneset_scale.go``), both of August 2026.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from plimsoll.model.decoding import decode
from plimsoll.model.kinds.deployment import (
    Deployment,
    DeploymentMeta,
    DeploymentSpec,
    DeploymentStatus,
)
from plimsoll.model.kinds.metadata import ApiObject, Int64

#: What the status has while the controller has more to do than to scale.
_UNREST = -1


class _Update(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    paused: bool = False


class _Lifecycle(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pre_delete: Any = None


class _CloneSetSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    replicas: Int64 = 1
    update_strategy: _Update = _Update()
    volume_claim_templates: tuple[Any, ...] = ()
    lifecycle: _Lifecycle = _Lifecycle()


class _CloneSet(ApiObject, frozen=True, kw_only=True, rename="camel"):
    metadata: DeploymentMeta = DeploymentMeta()
    spec: _CloneSetSpec = _CloneSetSpec()
    status: DeploymentStatus = DeploymentStatus()


class _RolloutSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    replicas: Int64 = 1
    paused: bool = False
    progress_deadline_seconds: Int64 = 600


class _RolloutStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    observed_generation: str = ""
    replicas: Int64 = 0
    updated_replicas: Int64 = 0
    available_replicas: Int64 = 0
    phase: str = ""
    current_pod_hash: str = ""
    stable: str = msgspec.field(default="", name="stableRS")


class _Rollout(ApiObject, frozen=True, kw_only=True, rename="camel"):
    metadata: DeploymentMeta = DeploymentMeta()
    spec: _RolloutSpec = _RolloutSpec()
    status: _RolloutStatus = _RolloutStatus()


def _clone_set(content: bytes | msgspec.Raw) -> Deployment:
    given = decode(_CloneSet, content)
    hindrance = ""
    if given.spec.volume_claim_templates:
        hindrance = "gives each pod volumes of its own, which it deletes with the pod"
    elif given.spec.lifecycle.pre_delete is not None:
        hindrance = "has a preDelete hook, which decides when a pod goes"
    return Deployment(
        kind="CloneSet",
        metadata=given.metadata,
        spec=DeploymentSpec(replicas=given.spec.replicas, paused=given.spec.update_strategy.paused),
        status=given.status,
        hindrance=hindrance,
    )


def _rollout(content: bytes | msgspec.Raw) -> Deployment:
    given = decode(_Rollout, content)
    status, seen = given.status, given.status.observed_generation
    is_at_rest = status.phase == "Healthy" and status.stable == status.current_pod_hash
    return Deployment(
        kind="Rollout",
        metadata=given.metadata,
        spec=DeploymentSpec(
            replicas=given.spec.replicas,
            paused=given.spec.paused,
            progress_deadline_seconds=given.spec.progress_deadline_seconds,
        ),
        status=DeploymentStatus(
            observed_generation=int(seen) if seen.isascii() and seen.isdecimal() and len(seen) < 19 else 0,
            replicas=status.replicas,
            updated_replicas=status.updated_replicas if is_at_rest else _UNREST,
            available_replicas=status.available_replicas,
        ),
    )


def _deployment(content: bytes | msgspec.Raw) -> Deployment:
    return decode(Deployment, content)


class ScaledKind(msgspec.Struct, frozen=True):
    """A kind whose number of replicas surges may change.

    Attributes:
        read: Reads an object as a Deployment.
    """

    api_version: str
    plural: str
    read: Callable[[bytes | msgspec.Raw], Deployment]

    def path(self, namespace: str = "", name: str = "") -> str:
        """The path of one object, or of all."""
        base = f"/apis/{self.api_version}"
        return f"{base}/namespaces/{namespace}/{self.plural}/{name}" if name else f"{base}/{self.plural}"


#: By kind; Deployments are the only ones of Kubernetes itself.
SCALED: Mapping[str, ScaledKind] = MappingProxyType(
    {
        "Deployment": ScaledKind("apps/v1", "deployments", _deployment),
        "Rollout": ScaledKind("argoproj.io/v1alpha1", "rollouts", _rollout),
        "CloneSet": ScaledKind("apps.kruise.io/v1alpha1", "clonesets", _clone_set),
    }
)


def is_scaled(api_version: str, kind: str) -> bool:
    """Whether an object of this kind is one, in whichever version of its group."""
    known = SCALED.get(kind)
    return known is not None and api_version.partition("/")[0] == known.api_version.partition("/")[0]
