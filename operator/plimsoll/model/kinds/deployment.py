"""Deployments with the fields that a surge needs, and the mark that a surge writes.

Source of the arithmetic: Kubernetes v1.36, ``pkg/controller/deployment/util/deployment_util.go``
(``ResolveFenceposts``, ``DeploymentComplete``).
"""

import hashlib
from typing import Any

import msgspec

from plimsoll.model.kinds.metadata import ApiObject
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.workload import IntOrString

#: Annotation of a pod template: the surge that its latest rollout was started for, as ``RECORD from NODE``.
SURGED = "plimsoll.dev/surged"

#: Label by which the pods of a Deployment's ReplicaSets differ; the ReplicaSet's name ends with its value.
TEMPLATE_HASH = "pod-template-hash"

_FROM = " from "


class RollingUpdate(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """How far a rollout may stray from the wanted number of pods."""

    max_surge: IntOrString = "25%"
    max_unavailable: IntOrString = "25%"


class DeploymentStrategy(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """How old pods are replaced."""

    type: str = "RollingUpdate"
    rolling_update: RollingUpdate = RollingUpdate()


class DeploymentSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What is wanted; the template is kept as it is written."""

    replicas: int = 1
    paused: bool = False
    progress_deadline_seconds: int = 600
    strategy: DeploymentStrategy = DeploymentStrategy()
    template: dict[str, Any] = {}


class DeploymentStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """How far the controller has come."""

    observed_generation: int = 0
    replicas: int = 0
    updated_replicas: int = 0
    available_replicas: int = 0


class Deployment(ApiObject, frozen=True, kw_only=True, rename="camel"):
    """ReplicaSets that follow one another (apps/v1)."""

    spec: DeploymentSpec = DeploymentSpec()
    status: DeploymentStatus = DeploymentStatus()

    @property
    def surged(self) -> str | None:
        """What the template's annotation says of a surge; None when it has none."""
        annotations = (self.spec.template.get("metadata") or {}).get("annotations") or {}
        said = annotations.get(SURGED)
        return None if said is None else str(said)

    @property
    def is_settled(self) -> bool:
        """Whether no rollout is under way: the controller has seen the spec, and all pods follow it."""
        status, wanted = self.status, self.spec.replicas
        return status.observed_generation >= self.metadata.generation and (
            status.replicas == status.updated_replicas == status.available_replicas == wanted
        )

    def bounds(self) -> tuple[int, int]:
        """Pods that a rollout may have beyond the wanted number, and below it; never both 0."""
        rolling = self.spec.strategy.rolling_update
        surge = _resolved(rolling.max_surge, self.spec.replicas, up=True)
        missing = _resolved(rolling.max_unavailable, self.spec.replicas, up=False)
        return surge, missing if surge or missing else 1

    def template_digest(self) -> str:
        """Tells this template from every other, whatever surges have written into it."""
        metadata = dict(self.spec.template.get("metadata") or {})
        annotations = dict(metadata.pop("annotations", None) or {})
        annotations.pop(SURGED, None)
        bare = {**self.spec.template, "metadata": {**metadata, "annotations": annotations}}
        return hashlib.sha256(msgspec.json.encode(bare, order="sorted")).hexdigest()[:32]


def mark_of(record: str, node: str) -> str:
    """What the annotation says while a record's rollout moves a pod off a node."""
    return f"{record}{_FROM}{node}"


def node_of(mark: str) -> str:
    """The node that the marked pod's predecessor is moved off."""
    return mark.partition(_FROM)[2]


def deployment_name_of(pod: Pod) -> str:
    """The Deployment that a pod belongs to, told from its label and its ReplicaSet's name; "" for none."""
    owner, digest = pod.metadata.controller, pod.metadata.labels.get(TEMPLATE_HASH)
    if owner is None or owner.kind != "ReplicaSet" or not digest or not owner.name.endswith(f"-{digest}"):
        return ""
    return owner.name.removesuffix(f"-{digest}")


def _resolved(amount: IntOrString, replicas: int, *, up: bool) -> int:
    """A count, or a share of the wanted number, in pods."""
    if isinstance(amount, int):
        return amount
    share = replicas * int(amount.removesuffix("%"))
    return -(-share // 100) if up else share // 100
