"""A pod as the engine sees it: its identity, and the template it shares with its siblings.

Pods of one ReplicaSet differ in name and uid only. Everything that decides about a pod's node is in its
:class:`PodTemplate`, compiled once and interned. Masks, scores and counters are then kept per template, not
per pod (docs/adr/0003).
"""

from collections.abc import Callable, Hashable
from enum import StrEnum
from hashlib import blake2b
from struct import Struct
from typing import Any, NamedTuple, TypeVar
from weakref import WeakValueDictionary

import msgspec
from msgspec.structs import astuple

from plimsoll.model.heavy_objects import HEAVY_BYTES
from plimsoll.model.kinds.gang_marks import gangs_of
from plimsoll.model.kinds.metadata import ObjectMeta, OwnerReference
from plimsoll.model.kinds.pod import Container, Pod, PodSpec, PodStatus, ResourceRequirements, Volume
from plimsoll.model.kinds.pod_terms import PodTerm, TermKind, compile_terms
from plimsoll.model.kinds.requests import (
    bounded,
    existing,
    fit_score,
    grants_the_spec,
    incoming,
    is_scalar,
    names_all,
    nonzero_existing,
    unreadable,
)
from plimsoll.model.names import PodUid
from plimsoll.model.read_only_dict import ReadOnlyDict
from plimsoll.model.selectors import NodeMatcher, SelectorError, compile_node_matcher

T = TypeVar("T")

#: Packs the identities of labels, owners and all fields of a spec but the first.
_IDENTITIES = Struct(f"{len(PodSpec.__struct_fields__) + 1}n").pack

_CONSTRAINTS = msgspec.msgpack.Encoder()
NO_AMOUNTS = ResourceRequirements()

#: The resources that have a minimum in scores.
WITH_MINIMUM = ("cpu", "memory")

#: Owners or volumes above which a template keeps only those that decide.
FEW_PARTS = 16

#: A request above this (a pebibyte) makes its node's sums be computed exactly rather than by addition.
LARGE_REQUEST = 2**50


class PodTemplate(msgspec.Struct, frozen=True, eq=False, weakref=True, kw_only=True):
    """The common part of all pods of one shape. Compare by identity: equal shapes are the same object.

    Attributes:
        sample: Some pod of this shape, without what decides nothing; read its spec, never its name, uid or
            status.
        owner: The controlling owner reference, or None.
        requests: Effective requests of a pod to be scheduled: cpu in milli, the rest in units.
        score_requests: Requests for NodeResourcesFit's score: 100m and 200 MiB for containers that name none.
        nonzero_requests: The same for a placed pod to which nothing was granted yet, cpu and memory only.
        terms: Its inter-pod (anti-)affinity terms.
        terms_error: Why its terms cannot be parsed, or "".
        unreadable: A sentence for each amount that is not a quantity and counts as 0.
        size: Bytes of the deciding fields, encoded.
        is_heavy: Whether it is so large that no cache may keep it when its pods have gone.
    """

    sample: Pod
    signature: bytes
    namespace: str
    labels: dict[str, str]
    owner: OwnerReference | None
    requests: dict[str, int]
    score_requests: dict[str, int]
    nonzero_requests: dict[str, int]
    unreadable: tuple[str, ...]
    terms: tuple[PodTerm, ...]
    terms_error: str
    size: int
    is_heavy: bool
    _memo: dict[Hashable, Any]

    @property
    def required_nodes(self) -> NodeMatcher:
        """The node selector and the required node affinity."""
        spec = self.sample.spec
        return self.memo(
            "required nodes", lambda: compile_node_matcher(spec.node_selector, spec.node_affinity.required)
        )

    @property
    def constraints(self) -> bytes | None:
        """A digest of the pods' constraints on nodes, without amounts; None if the pod's name matters.

        Left out are the labels, the owner, names of containers, all amounts, terms about other pods, and the
        group: the digest is equal for templates that differ only in these.
        """
        return self.memo("constraints", lambda: _constraints_of(self.sample))

    @property
    def shape(self) -> Hashable:
        """Equal for templates of equal constraints and amounts; None if the pod's name matters."""
        return self.memo("shape", lambda: _shape_of(self))

    def terms_of(self, kind: TermKind) -> tuple[PodTerm, ...]:
        """The terms of one list."""
        return tuple(term for term in self.terms if term.kind is kind)

    def memo(self, key: Hashable, build: Callable[[], T]) -> T:
        """The value that a plugin compiled from this shape, built on first use.

        The value must depend on the template and ``key`` alone.
        """
        if key not in self._memo:
            self._memo[key] = build()
        value: T = self._memo[key]
        return value


class HolderKind(StrEnum):
    """The kinds of holders of room on a node."""

    POD = "pod"  #: a pod that exists; the key is its uid
    REPLACEMENT = "replacement"  #: the pod that an owner will create; record key, or the moved pod's uid
    BENEFICIARY = "beneficiary"  #: a pending pod that moves make room for; the key is its uid


class Holder(NamedTuple):
    """A holder of room on a node; each holds room on at most one."""

    kind: HolderKind
    key: str

    @property
    def uid(self) -> str:
        """The uid under which it counts: a pod's own, or one that no pod has."""
        return self.key if self.kind is HolderKind.POD else self.kind + ":" + self.key


class PodInfo(msgspec.Struct, frozen=True, eq=False):
    """One pod: its object, its template, and what differs between siblings.

    Attributes:
        stands_in_for: The holder that this pod represents; None for a pod that exists.
        requests: Its requests on its node, including in-place resizes: cpu in milli, the rest in units.
        nonzero_cpu_milli: The same with kube-scheduler's minimum of 100m a container.
        nonzero_memory_bytes: Likewise with 200 MiB.
        is_large: Whether some request is so large that sums might exceed int64.
    """

    pod: Pod
    template: PodTemplate
    stands_in_for: Holder | None
    namespace: str
    uid: PodUid
    requests: dict[str, int]
    nonzero_cpu_milli: int
    nonzero_memory_bytes: int
    is_large: bool

    @property
    def name(self) -> str:
        """The pod's name."""
        return self.pod.name

    @property
    def key(self) -> str:
        """``namespace/name``; computed on demand, as few pods need it."""
        return self.pod.key

    @property
    def labels(self) -> dict[str, str]:
        """The pod's labels."""
        return self.pod.labels

    @property
    def priority(self) -> int:
        """``spec.priority``, 0 when unset."""
        return self.pod.priority

    @property
    def is_terminating(self) -> bool:
        """Whether its deletion has begun."""
        return self.pod.is_terminating

    def __repr__(self) -> str:
        """The key, for failure messages."""
        return f"PodInfo({self.key})"


def template_of(pod: Pod, signature: bytes, size: int) -> PodTemplate:
    """Compile the template of a pod's shape."""
    requests = bounded(incoming(pod))
    if names_all(pod):
        score_requests = requests
        nonzero_requests = {name: requests.get(name, 0) for name in WITH_MINIMUM}
    else:
        score_requests = bounded(fit_score(pod, lambda name: name in requests or is_scalar(name)))
        plain = msgspec.structs.replace(pod, status=PodStatus())
        nonzero_requests = bounded(nonzero_existing(plain))
    terms: tuple[PodTerm, ...] = ()
    terms_error = ""
    try:
        terms = compile_terms(pod.spec.affinity, pod.namespace)
    except SelectorError as exc:
        terms_error = str(exc)
    return PodTemplate(
        sample=_sample(pod),
        signature=signature,
        namespace=pod.namespace,
        labels=pod.labels,
        owner=pod.metadata.controller,
        requests=requests,
        score_requests=score_requests,
        nonzero_requests=ReadOnlyDict(nonzero_requests),
        unreadable=tuple(unreadable(pod)),
        terms=terms,
        terms_error=terms_error,
        size=size,
        is_heavy=size > HEAVY_BYTES,
        _memo={},
    )


def _sample(pod: Pod) -> Pod:
    """The pod without annotations and status, and without owners and volumes that decide nothing if many.

    A template may live on when its first pod has gone.
    """
    metadata, spec = pod.metadata, pod.spec
    owners = metadata.owner_references
    if len(owners) > FEW_PARTS:
        owners = () if metadata.controller is None else (metadata.controller,)
    if len(spec.volumes) > FEW_PARTS:
        spec = msgspec.structs.replace(spec, volumes=deciding_volumes(spec))
    return Pod(
        metadata=ObjectMeta(
            name=metadata.name,
            namespace=metadata.namespace,
            uid=metadata.uid,
            labels=metadata.labels,
            owner_references=owners,
        ),
        spec=spec,
        status=PodStatus(resource_claim_statuses=pod.status.resource_claim_statuses),
    )


def info_of(pod: Pod, template: PodTemplate, stands_in_for: Holder | None = None) -> PodInfo:
    """The engine's view of a pod with that template."""
    if grants_the_spec(pod):
        requests = template.requests
        nonzero = template.nonzero_requests
    else:
        own = bounded(existing(pod))
        # Siblings share one dict: half a million pods are held in memory.
        requests = template.requests if own == template.requests else own
        nonzero = bounded(nonzero_existing(pod))
    metadata = pod.metadata
    return PodInfo(
        pod,
        template,
        stands_in_for,
        metadata.namespace,
        PodUid(metadata.uid),
        requests,
        nonzero["cpu"],
        nonzero["memory"],
        max(requests.values(), default=0) > LARGE_REQUEST,
    )


class Templates:
    """Interns templates: one object for all pods of one shape, while any such pod is kept."""

    def __init__(self) -> None:
        # Weak, because every pod may have a new shape: a Job's pods have labels of their own.
        self._by_signature: WeakValueDictionary[bytes, PodTemplate] = WeakValueDictionary()
        # A template keeps its sample, and the sample its parts: while it lives, no other object has their
        # ids.
        self._by_parts: WeakValueDictionary[bytes, PodTemplate] = WeakValueDictionary()
        self._encoder = msgspec.msgpack.Encoder()

    def __len__(self) -> int:
        return len(self._by_signature)

    def info(self, pod: Pod, stands_in_for: Holder | None = None) -> PodInfo:
        """The engine's view of ``pod``; another state of a stand-in still represents its holder."""
        parts = parts_of(pod)
        template = self._by_parts.get(parts)
        if template is None:
            shape = self._encoder.encode(shape_of(pod))
            signature = blake2b(shape, digest_size=16).digest()
            template = self._by_signature.get(signature)
            if template is None:
                template = self._by_signature[signature] = template_of(pod, signature, len(shape))
                if not has_own_claims(pod) and parts == parts_of(template.sample):
                    self._by_parts[parts] = template
        return info_of(pod, template, stands_in_for)

    def at_priority(self, pod: PodInfo, least: int | None) -> PodInfo:
        """The same pod, at ``least`` this priority."""
        if least is None or pod.priority >= least:
            return pod
        spec = msgspec.structs.replace(pod.pod.spec, priority=least)
        return self.info(msgspec.structs.replace(pod.pod, spec=spec), pod.stands_in_for)

    def stand_in(self, pod: PodInfo, holder: Holder, priority: int | None = None, node: str = "") -> PodInfo:
        """A stand-in: a pod of the same shape that represents a holder; the only place that creates one.

        Args:
            pod: The pod whose shape it gets: requests, terms, ports, volumes. Of its identity only the name
                is kept, and the names of its resource claims, which identify its devices.
            holder: The holder that it represents.
            priority: The pod's own when None.
            node: The node it runs on, "" for none.
        """
        metadata = pod.pod.metadata
        spec = msgspec.structs.replace(pod.pod.spec, node_name=node)
        if priority is not None:
            spec = msgspec.structs.replace(spec, priority=priority)
        return self.info(
            msgspec.structs.replace(
                pod.pod,
                metadata=ObjectMeta(
                    name=metadata.name,
                    namespace=metadata.namespace,
                    uid=holder.uid,
                    labels=metadata.labels,
                    annotations=metadata.annotations,
                    owner_references=metadata.owner_references,
                ),
                spec=spec,
                status=PodStatus(
                    phase="Pending", resource_claim_statuses=pod.pod.status.resource_claim_statuses
                ),
            ),
            holder,
        )


def parts_of(pod: Pod) -> bytes:
    """The identities of the objects that make up a pod's shape: pods with the same parts have one shape.

    The node's name is the first field of a spec, and not part of the shape. Packed: half a million pods may
    have a hundred thousand shapes, and a tuple of identities takes five times as much memory.
    """
    meta = pod.metadata
    identities = _IDENTITIES(id(meta.labels), id(meta.owner_references), *map(id, astuple(pod.spec)[1:]))
    return identities + meta.namespace.encode()


def shape_of(pod: Pod) -> tuple[object, ...]:
    """All fields that a placement decision may depend on, except name, uid, node and status.

    The claims of ephemeral volumes are named after the pod, and so are resource claims from templates: a pod
    with one has a shape of its own.
    """
    spec = pod.spec
    metadata = pod.metadata
    owner = metadata.controller if metadata.owner_references else None
    own = None
    if has_own_claims(pod):
        own = (pod.name, pod.uid, pod.status.resource_claim_statuses)
    if spec.volumes:
        spec = msgspec.structs.replace(spec, node_name="", volumes=deciding_volumes(spec))
    elif spec.node_name:
        spec = msgspec.structs.replace(spec, node_name="")
    return (own, metadata.namespace, metadata.labels, (owner.kind, owner.name) if owner else None, spec)


def has_own_claims(pod: Pod) -> bool:
    """Whether some claim of the pod, for a volume or for devices, is named after it."""
    spec = pod.spec
    return any(each.resource_claim_template_name is not None for each in spec.resource_claims) or any(
        volume.ephemeral is not None for volume in spec.volumes
    )


def _shape_of(template: PodTemplate) -> Hashable:
    if template.constraints is None:
        return None
    amounts = template.requests, template.score_requests
    return template.constraints, *(tuple(sorted(each.items())) for each in amounts)


def _constraints_of(pod: Pod) -> bytes | None:
    spec = pod.spec
    volumes = deciding_volumes(spec) if spec.volumes else ()
    if spec.resource_claims or any(volume.ephemeral is not None for volume in volumes):
        return None
    rest = msgspec.structs.replace(
        spec,
        node_name="",
        containers=_without_amounts(spec.containers),
        init_containers=_without_amounts(spec.init_containers),
        resources=None,
        overhead={},
        affinity=None,
        topology_spread_constraints=(),
        volumes=volumes,
        scheduling_group=None,
        workload_ref=None,
    )
    encoded = _CONSTRAINTS.encode((pod.metadata.namespace, spec.node_affinity, rest))
    return blake2b(encoded, digest_size=16).digest()


def _without_amounts(containers: tuple[Container, ...]) -> tuple[Container, ...]:
    return tuple([msgspec.structs.replace(each, name="", resources=NO_AMOUNTS) for each in containers])


def deciding_volumes(spec: PodSpec) -> tuple[Volume, ...]:
    """The volumes that decisions read, without other sources (tokens, secrets)."""
    return tuple([volume for volume in spec.volumes if volume != Volume(name=volume.name)])


def counts_the_same(one: PodInfo, other: PodInfo) -> bool:
    """Whether two states of a pod count the same in every column and index."""
    return (
        one.template is other.template
        and one.requests == other.requests
        and one.nonzero_cpu_milli == other.nonzero_cpu_milli
        and one.nonzero_memory_bytes == other.nonzero_memory_bytes
        and one.is_terminating == other.is_terminating
        and (one.pod.metadata.annotations == other.pod.metadata.annotations or _same_gangs(one, other))
    )


def _same_gangs(one: PodInfo, other: PodInfo) -> bool:
    """Whether two states of a pod name the same gangs: some systems add the name to a running pod."""
    return gangs_of(one.pod) == gangs_of(other.pod)
