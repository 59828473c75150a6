"""Deployments with the fields that a surge needs, and the marks that a surge writes.

Source of the arithmetic: Kubernetes v1.36, ``pkg/controller/deployment/util/deployment_util.go``
(``ResolveFenceposts``, ``DeploymentComplete``).
"""

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from plimsoll.model.kinds.metadata import ApiObject, Int64, ObjectMeta
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.workload import IntOrString
from plimsoll.model.read_only_dict import NO_ENTRIES

#: Annotation of a pod template: the surge that started its latest rollout, as ``RECORD from NODE``.
SURGED = "plimsoll.dev/surged"

#: Annotation of a pod that says which one a ReplicaSet deletes first: the one with the least.
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"

#: The least cost of deletion.
LEAST_COST = str(-(2**31) + 1)

#: Annotation of a pod whose cost of deletion is ours: the policy that would rather see it go.
WANTED_GONE = "plimsoll.dev/wanted-gone"

#: Label by which the pods of a Deployment's ReplicaSets differ; the ReplicaSet's name ends with its value.
TEMPLATE_HASH = "pod-template-hash"

#: Maximum digits of a percentage; other texts, which the API server rejects, count as 0.
LONGEST_SHARE = 9

_FROM = " from "

#: Prefix of the field managers that write ``replicas`` for a surge; the rest names the record.
SURGER = "plimsoll-surge-"

#: Managers that restore ``replicas`` though they do not apply it server-side: Argo CD, Flux, Rancher Fleet.
_RECONCILERS = ("argocd", "helm-controller", "kustomize-controller", "fleet")

#: The manager of ``kubectl scale``: a person who chose a number once.
_PERSON = "kubectl"


class RollingUpdate(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """How far a rollout may deviate from the wanted number of pods."""

    max_surge: IntOrString = "25%"
    max_unavailable: IntOrString = "25%"


class DeploymentStrategy(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """How old pods are replaced."""

    type: str = "RollingUpdate"
    rolling_update: RollingUpdate = RollingUpdate()


class DeploymentSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The wanted state; the template is kept as written."""

    replicas: Int64 = 1
    paused: bool = False
    progress_deadline_seconds: Int64 = 600
    strategy: DeploymentStrategy = DeploymentStrategy()
    template: dict[str, Any] = NO_ENTRIES


class DeploymentStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The progress of the controller."""

    observed_generation: Int64 = 0
    replicas: Int64 = 0
    updated_replicas: Int64 = 0
    available_replicas: Int64 = 0


class OwnedLeaf(msgspec.Struct, frozen=True):
    """A field in a set of fields; what is below it does not matter."""


class OwnedSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a spec that a manager wrote, as far as they matter."""

    replicas: OwnedLeaf | None = msgspec.field(default=None, name="f:replicas")


class OwnedFields(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of an object that a manager wrote, as far as they matter (FieldsV1)."""

    spec: OwnedSpec = msgspec.field(default=OwnedSpec(), name="f:spec")


class FieldManager(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Who wrote which fields of an object (``metadata.managedFields``)."""

    manager: str = ""
    operation: str = ""
    subresource: str = ""
    fields: OwnedFields = msgspec.field(default=OwnedFields(), name="fieldsV1")

    @property
    def writes_replicas(self) -> bool:
        """Whether it wrote ``spec.replicas`` last, or applies it."""
        return self.fields.spec.replicas is not None

    @property
    def keeps_replicas(self) -> bool:
        """Whether it would change ``spec.replicas`` back, or to something else: GitOps and autoscalers."""
        if not self.writes_replicas or self.manager.startswith(SURGER):
            return False
        is_scaler = self.subresource == "scale" and self.manager != _PERSON
        return self.operation == "Apply" or is_scaler or self.manager.startswith(_RECONCILERS)


class DeploymentMeta(ObjectMeta, frozen=True, kw_only=True, rename="camel", gc=False):
    """Metadata with the managers of fields."""

    managed_fields: tuple[FieldManager, ...] = ()


class Deployment(ApiObject, frozen=True, kw_only=True, rename="camel"):
    """ReplicaSets that follow one another (apps/v1).

    Attributes:
        kind: Another one for what :mod:`plimsoll.model.kinds.scaled_workloads` reads as a Deployment.
        hindrance: Why one replica more is no way to move its pods, as a clause; "" for nothing.
    """

    kind: str = "Deployment"
    hindrance: str = ""
    metadata: DeploymentMeta = DeploymentMeta()
    spec: DeploymentSpec = DeploymentSpec()
    status: DeploymentStatus = DeploymentStatus()

    def __str__(self) -> str:
        """Kind and name, for sentences."""
        return f"{self.kind} {self.metadata.name}"

    @property
    def scaled(self) -> str:
        """The key under which a HorizontalPodAutoscaler that scales it is known."""
        return f"{self.kind} {self.key}"

    @property
    def surged(self) -> str | None:
        """The template's annotation about a surge; None without one."""
        said = _annotations(self.spec.template).get(SURGED)
        return None if said is None else str(said)

    @property
    def is_settled(self) -> bool:
        """Whether no rollout is under way: the controller has observed the spec, and all pods match it."""
        status, wanted = self.status, self.spec.replicas
        return status.observed_generation >= self.metadata.generation and (
            status.replicas == status.updated_replicas == status.available_replicas == wanted
        )

    @property
    def keeper(self) -> str:
        """Who changes ``spec.replicas`` by itself, "" if no client does: a surge would fight with it."""
        owner = self.metadata.controller
        if owner is not None:
            return f"{owner.kind} {owner.name}"
        return next((each.manager for each in self.metadata.managed_fields if each.keeps_replicas), "")

    def is_scaled_by(self, manager: str) -> bool:
        """Whether this field manager wrote ``spec.replicas`` last."""
        return any(each.manager == manager and each.writes_replicas for each in self.metadata.managed_fields)

    def bounds(self) -> tuple[int, int]:
        """Pods that a rollout may have above the wanted number, and below it; never both 0."""
        rolling = self.spec.strategy.rolling_update
        surge = _resolved(rolling.max_surge, self.spec.replicas, up=True)
        missing = _resolved(rolling.max_unavailable, self.spec.replicas, up=False)
        return surge, missing if surge or missing else 1

    def template_digest(self) -> str:
        """Identifies this template regardless of the marks of surges."""
        given = self.spec.template.get("metadata")
        metadata = dict(given) if isinstance(given, dict) else {}
        annotations = {key: said for key, said in _annotations(self.spec.template).items() if key != SURGED}
        bare = {**self.spec.template, "metadata": {**metadata, "annotations": annotations}}
        return hashlib.sha256(msgspec.json.encode(bare, order="sorted")).hexdigest()[:32]


def _annotations(template: Mapping[str, Any]) -> Mapping[str, Any]:
    """The annotations of a pod template; none if they have the wrong type."""
    metadata = template.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    return annotations if isinstance(annotations, dict) else {}


def surger_of(record: str) -> str:
    """The field manager that writes ``replicas`` for a record, ``namespace/name``."""
    return SURGER + hashlib.sha256(record.encode()).hexdigest()[:16]


def mark_of(record: str, node: str) -> str:
    """The annotation's value while a record's rollout moves a pod off a node."""
    return f"{record}{_FROM}{node}"


def node_of(mark: str) -> str:
    """The node that the marked pod's predecessor is moved off."""
    return mark.partition(_FROM)[2]


def deployment_name_of(pod: Pod) -> str:
    """The Deployment of a pod, from its label and its ReplicaSet's name; "" for none."""
    owner, digest = pod.metadata.controller, pod.metadata.labels.get(TEMPLATE_HASH)
    if owner is None or owner.kind != "ReplicaSet" or not digest or not owner.name.endswith(f"-{digest}"):
        return ""
    return owner.name.removesuffix(f"-{digest}")


def _resolved(amount: IntOrString, replicas: int, *, up: bool) -> int:
    """A count, or a share of the wanted number, in pods."""
    if isinstance(amount, int):
        return amount
    digits = amount.removesuffix("%")
    share = replicas * int(digits) if digits.isdecimal() and len(digits) <= LONGEST_SHARE else 0
    return -(-share // 100) if up else share // 100
