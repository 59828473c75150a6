"""Builds the pods that controllers would create for Deployments, StatefulSets, Jobs and other workloads.

Source: Kubernetes v1.36, ``pkg/controller``: labels, names and owners of pods.
Differs: names end with a number instead of random letters.
"""

import hashlib
from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from plimsoll.inspection.manifests.daemon_pods import with_daemon_tolerations
from plimsoll.inspection.manifests.pod_defaults import Document, ManifestError, PodDefaults
from plimsoll.model.decoding import DecodeError, convert
from plimsoll.model.kinds.deployment import TEMPLATE_HASH
from plimsoll.model.kinds.metadata import ObjectMeta, OwnerReference
from plimsoll.model.kinds.owned_group import JobGroup
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.storage import PersistentVolumeClaim
from plimsoll.model.kinds.workload import ReplicaSet, ReplicaSpec, StatefulSet
from plimsoll.model.selectors import LabelSelector

#: Length of a pod template's hash, in characters.
_HASH = 10
_API = {"Job": "batch/v1", "CronJob": "batch/v1"}


class WorkloadPods(Struct, frozen=True):
    """A workload, and the pods that its controller would create.

    Attributes:
        replicas: Number of desired pods; 0 for a DaemonSet, whose number depends on the nodes.
        template: A pod as the API server would store it, except for its name and uid.
        owner: The object that counts the pods: the ReplicaSet of a Deployment, the StatefulSet.
        claims: Claims that a StatefulSet creates for each pod, named as the volumes.
        name_labels: Labels whose value is the pod's name.
        number_labels: Labels whose value is the pod's number.
        notes: Sentences about facts that are unknown, or treated differently.
        group: The Job in the form of a group, for policies that derive groups from owners.
    """

    kind: str
    namespace: str
    name: str
    replicas: int
    template: Pod
    owner: ReplicaSet | StatefulSet | None = None
    claims: tuple[PersistentVolumeClaim, ...] = ()
    name_labels: tuple[str, ...] = ()
    number_labels: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    group: JobGroup | None = None

    @property
    def subject(self) -> str:
        """``Kind namespace/name``."""
        return f"{self.kind} {self.namespace}/{self.name}"

    def pod(self, number: int, now: datetime) -> Pod:
        """The pod with this number, from 0, as just created."""
        is_itself = self.kind == "Pod" and number == 0
        name = self.name if is_itself else f"{self.template.name}-{number}"
        metadata = self.template.metadata
        labels = metadata.labels
        if self.name_labels or self.number_labels:
            labels = {**labels, **dict.fromkeys(self.name_labels, name)}
            labels.update(dict.fromkeys(self.number_labels, str(number)))
        return msgspec.structs.replace(
            self.template,
            metadata=msgspec.structs.replace(
                metadata,
                name=name,
                uid=f"new:{self.kind}:{self.namespace}/{name}",
                labels=labels,
                creation_timestamp=now,
            ),
        )


def workload_pods(document: Document, namespace: str, defaults: PodDefaults) -> WorkloadPods:
    """Read a workload; ``namespace`` applies if it names none.

    Raises:
        ManifestError: Its kind has no pods, or a part of it is missing or cannot be read.
    """
    kind = document.get("kind")
    build = _BUILDERS.get(str(kind))
    metadata = _mapping(document, "metadata", f"{kind}")
    name = metadata.get("name") or metadata.get("generateName")
    if build is None or not name:
        raise ManifestError(
            f"{kind} {name or 'without a name'}: pods are of {', '.join(_BUILDERS)}, each with metadata.name"
        )
    namespace = metadata.get("namespace") or namespace
    subject = f"{kind} {namespace}/{name}"
    reading = _Reading(str(kind), namespace, str(name), document, subject)
    try:
        return _read(reading, build(reading), defaults)
    except DecodeError as exc:
        raise ManifestError(f"{subject}: {exc.cause}") from exc
    except (AttributeError, TypeError, ValueError) as exc:
        raise ManifestError(f"{subject}: a list or a mapping is missing where its spec needs one") from exc


def _read(reading: "_Reading", built: "_Built", defaults: PodDefaults) -> WorkloadPods:
    """Build the workload; raises the errors of a malformed document."""
    metadata, owner = built.pod.get("metadata") or {}, _owner_of(reading)
    template = {
        "metadata": {
            "name": reading.prefix or reading.name,
            "namespace": reading.namespace,
            "labels": {**(metadata.get("labels") or {}), **built.labels},
            "annotations": metadata.get("annotations") or {},
            "ownerReferences": [owner] if owner else [],
        },
        "spec": built.pod.get("spec"),
    }
    if not isinstance(template["spec"], dict) or not template["spec"].get("containers"):
        raise ManifestError(f"{reading.subject}: its pods have no spec.containers; a pod has at least one")
    convert(Pod, template)  # its error gives the place
    admitted, notes = defaults.admit(template, reading.subject)
    return WorkloadPods(
        kind=reading.kind,
        namespace=reading.namespace,
        name=reading.name,
        replicas=built.replicas,
        template=built.finish(convert(Pod, admitted)),
        owner=_counted_by(reading, built),
        claims=tuple(convert(PersistentVolumeClaim, each) for each in built.claims),
        name_labels=built.name_labels,
        number_labels=built.number_labels,
        notes=(*built.notes, *notes),
        group=None if built.group is None else convert(JobGroup, built.group),
    )


# -- the kinds ---------------------------------------------------------------------------------------------


class _Reading(Struct):
    """A document while it is read."""

    kind: str
    namespace: str
    name: str
    document: Document
    subject: str
    prefix: str = ""  #: prefix of the pods' names; "" for the workload's own name

    @property
    def spec(self) -> Document:
        return _mapping(self.document, "spec", self.subject)

    @property
    def template(self) -> Document:
        return _mapping(self.spec, "template", f"{self.subject}: spec")

    def count(self, name: str, default: int = 1) -> int:
        """A number of the spec, at least 0."""
        amount = self.spec.get(name)
        if amount is None:
            return default
        if not isinstance(amount, int) or isinstance(amount, bool) or amount < 0:
            raise ManifestError(f"{self.subject}: spec.{name} is {amount!r}; it must be an integer from 0")
        return amount


class _Built(Struct):
    """What a kind defines about its pods."""

    pod: Document
    replicas: int = 1
    labels: dict[str, str] = field(default_factory=dict)
    claims: list[Document] = field(default_factory=list)
    name_labels: tuple[str, ...] = ()
    number_labels: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    group: Document | None = None
    finish: Callable[[Pod], Pod] = field(default=lambda pod: pod)


def _deployment(reading: _Reading) -> _Built:
    encoded = msgspec.json.encode(reading.template, order="sorted")
    digest = hashlib.sha256(encoded).hexdigest()[:_HASH]
    reading.prefix = f"{reading.name}-{digest}"
    return _Built(reading.template, reading.count("replicas"), {TEMPLATE_HASH: digest})


def _replica_set(reading: _Reading) -> _Built:
    return _Built(reading.template, reading.count("replicas"))


def _stateful_set(reading: _Reading) -> _Built:
    claims = reading.spec.get("volumeClaimTemplates") or []
    template = reading.template
    volumes = [
        {"name": name, "persistentVolumeClaim": {"claimName": name}}
        for name in (each.get("metadata", {}).get("name", "") for each in claims)
    ]
    given = [
        each
        for each in (template.get("spec") or {}).get("volumes") or ()
        if each.get("name") not in {volume["name"] for volume in volumes}
    ]
    pod = {**template, "spec": {**(template.get("spec") or {}), "volumes": [*given, *volumes]}}
    return _Built(
        pod,
        reading.count("replicas"),
        claims=claims,
        name_labels=("statefulset.kubernetes.io/pod-name",),
        number_labels=("apps.kubernetes.io/pod-index",),
    )


def _job(reading: _Reading) -> _Built:
    spec = reading.spec
    parallelism, completions = reading.count("parallelism"), spec.get("completions")
    running = parallelism if completions is None else min(parallelism, reading.count("completions"))
    notes: list[str] = []
    if spec.get("suspend"):
        running = 0
        notes.append(f"{reading.subject} is suspended: it makes no pods until spec.suspend is false")
    if completions is not None and isinstance(completions, int) and completions > running > 0:
        notes.append(
            f"{reading.subject}: {running} of its {completions} pods run simultaneously; these are placed"
        )
    labels = dict.fromkeys(("job-name", "batch.kubernetes.io/job-name"), reading.name)
    is_indexed = spec.get("completionMode") == "Indexed"
    numbers = ("batch.kubernetes.io/job-completion-index",) if is_indexed else ()
    metadata = reading.document.get("metadata") or {}
    group = {
        "metadata": {
            "name": reading.name,
            "namespace": reading.namespace,
            "uid": f"new:Job:{reading.namespace}/{reading.name}",
            "annotations": metadata.get("annotations") or {},
        },
        "spec": spec,
    }
    return _Built(reading.template, running, labels, number_labels=numbers, notes=tuple(notes), group=group)


def _cron_job(reading: _Reading) -> _Built:
    job = _mapping(reading.spec, "jobTemplate", f"{reading.subject}: spec")
    inner = replace(reading, document={"metadata": job.get("metadata") or {}, "spec": job.get("spec") or {}})
    built = _job(inner)
    built.notes = (*built.notes, f"{reading.subject}: the pods of one run are placed")
    return built


def _daemon_set(reading: _Reading) -> _Built:
    return _Built(reading.template, 0, finish=with_daemon_tolerations)


def _pod(reading: _Reading) -> _Built:
    return _Built({"metadata": reading.document["metadata"], "spec": reading.spec})


_BUILDERS: dict[str, Callable[[_Reading], _Built]] = {
    "Deployment": _deployment,
    "StatefulSet": _stateful_set,
    "ReplicaSet": _replica_set,
    "Job": _job,
    "CronJob": _cron_job,
    "DaemonSet": _daemon_set,
    "Pod": _pod,
}

#: Kinds of workloads that define pods.
WORKLOAD_KINDS = tuple(_BUILDERS)


def _owner_of(reading: _Reading) -> Document | None:
    """The controller reference of the pods."""
    if reading.kind == "Pod":
        return None
    kind, name = reading.kind, reading.name
    if kind == "Deployment":
        kind, name = "ReplicaSet", reading.prefix
    elif kind == "CronJob":
        kind = "Job"
    uid = f"new:{kind}:{reading.namespace}/{name}"
    api = _API.get(kind, "apps/v1")
    return {"apiVersion": api, "kind": kind, "name": name, "uid": uid, "controller": True}


def _counted_by(reading: _Reading, built: _Built) -> ReplicaSet | StatefulSet | None:
    """The object by whose selector plugins determine which pods belong together."""
    if reading.kind not in {"Deployment", "ReplicaSet", "StatefulSet"}:
        return None
    selector = convert(LabelSelector, reading.spec.get("selector") or {})
    if built.labels:
        selector = msgspec.structs.replace(selector, match_labels={**selector.match_labels, **built.labels})
    owner = _owner_of(reading) or {}
    above: tuple[OwnerReference, ...] = ()
    if reading.kind == "Deployment":
        uid = f"new:Deployment:{reading.namespace}/{reading.name}"
        above = (
            OwnerReference(
                api_version="apps/v1", kind="Deployment", name=reading.name, uid=uid, controller=True
            ),
        )
    metadata = ObjectMeta(
        name=owner["name"], namespace=reading.namespace, uid=owner["uid"], owner_references=above
    )
    spec = ReplicaSpec(replicas=built.replicas, selector=selector)
    if reading.kind == "StatefulSet":
        return StatefulSet(metadata=metadata, spec=spec)
    return ReplicaSet(metadata=metadata, spec=spec)


def _mapping(document: Document, name: str, subject: str) -> Document:
    found: Any = document.get(name)
    if not isinstance(found, dict):
        raise ManifestError(f"{subject}: {name} is missing, or is no mapping")
    return found
