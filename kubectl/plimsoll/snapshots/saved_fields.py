"""Trims objects to the fields that decisions, explanations and names need: the fields of the model.

Each kind of the model has a twin here with the same fields, which omits defaults when it is encoded. Decoding
into the twin skips every other field without building it. Fields outside the model (managed fields,
environment, commands, secrets, unread annotations) therefore cannot be saved. A field whose type accepts any
value needs a type of its own in ``NARROWED``; building the twin fails without one.
"""

from collections.abc import Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

import msgspec

from plimsoll.api.v1alpha1.annotations import APPROVED, PAUSE_REASON, PAUSED_BY, STOP
from plimsoll.cluster.partial_objects import decode_in_part
from plimsoll.cluster.watched_resources import GROUP_OWNERS, OPTIONAL, WATCHED
from plimsoll.devices.extended_resources import ANNOTATION as EXTENDED
from plimsoll.model.autoscalers.horizontal_pod_autoscaler import HorizontalPodAutoscaler
from plimsoll.model.autoscalers.limit_ranges import ANNOTATION as DEFAULTED
from plimsoll.model.decoding import DecodeError
from plimsoll.model.kinds.deployment import (
    SURGED,
    WANTED_GONE,
    Deployment,
    DeploymentMeta,
    DeploymentSpec,
)
from plimsoll.model.kinds.metadata import ObjectMeta
from plimsoll.model.kinds.owned_group import REQUIRED_TOPOLOGY, ReplicatedJob
from plimsoll.model.kinds.pod import MIRROR, PodSpec
from plimsoll.model.kinds.pod_group import PREFERRED_TOPOLOGY
from plimsoll.model.kinds.resource_claim import AllocatedDevices, DeviceClaim
from plimsoll.model.kinds.resource_slice import DeviceClassSpec
from plimsoll.model.kinds.volume_claims import (
    BIND_COMPLETED,
    CLASS_ANNOTATION,
    MIGRATED_PLUGINS,
    SELECTED_NODE,
)
from plimsoll.model.prices import PRICE
from plimsoll.model.read_only_dict import NO_ENTRIES
from plimsoll.policies.extensions import declared_here
from plimsoll.snapshots.content import DEPLOYMENTS, MAINTENANCES, POLICIES, RECORDS, RULES, SCALERS
from plimsoll.strategies import default_evictor
from plimsoll.toolkit.descheduling.disruption_signals import SIGNALS, Form

#: Annotation of a pod: its run time in seconds in a replay, after which it ends.
DURATION = "plimsoll.dev/replay-seconds"

#: The only annotations that are saved: those that something reads.
ANNOTATIONS = tuple(
    sorted(
        {
            APPROVED,
            BIND_COMPLETED,
            CLASS_ANNOTATION,
            DEFAULTED,
            DURATION,
            EXTENDED,
            MIGRATED_PLUGINS,
            SELECTED_NODE,
            STOP,
            PAUSED_BY,
            PAUSE_REASON,
            PREFERRED_TOPOLOGY,
            PRICE,
            REQUIRED_TOPOLOGY,
            SURGED,
            WANTED_GONE,
            MIRROR,
            default_evictor.SOURCE,
            *(each.key for each in SIGNALS if each.form is Form.ANNOTATION),
        }
    )
)

#: The model type of each collection, by plural.
KINDS: Mapping[str, type] = {
    **{each.name: each.kind for each in (*WATCHED, *OPTIONAL, *GROUP_OWNERS)},
    DEPLOYMENTS: Deployment,
    SCALERS: HorizontalPodAutoscaler,
}


def kinds() -> Mapping[str, type]:
    """The same, with those that installed plugins declare."""
    return {**KINDS, **{each.name: each.kind for each in declared_here()}}


class _Configuration(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Replaces the opaque configuration of devices, which no decision reads and which may hold secrets."""

    requests: tuple[str, ...] = ()


class _Dependency(msgspec.Struct, frozen=True):
    """Replaces a Job on which another one of its JobSet depends: that there is one is all that counts."""


class _PodTemplate(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Replaces the free-form template of a Deployment."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()


_Annotations = msgspec.defstruct(
    "_Annotations",
    [
        (f"annotation_{number}", str | None, msgspec.field(default=None, name=name))
        for number, name in enumerate(ANNOTATIONS)
    ],
    frozen=True,
    kw_only=True,
    omit_defaults=True,
)

#: Types of fields that accept more values in the model than a snapshot may contain.
NARROWED: Mapping[tuple[type, str], Any] = {
    **{(metadata, "annotations"): _Annotations for metadata in (ObjectMeta, DeploymentMeta)},
    (DeploymentSpec, "template"): _PodTemplate,
    (ReplicatedJob, "depends_on"): tuple[_Dependency, ...],
    (DeviceClaim, "config"): tuple[_Configuration, ...],
    (AllocatedDevices, "config"): tuple[_Configuration, ...],
    (DeviceClassSpec, "config"): tuple[_Configuration, ...],
}


class _Resource(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """An object of our own API group: the API server has pruned it to its schema."""

    api_version: str = ""
    kind: str = ""
    metadata: Any = None
    spec: Any = None
    status: Any = None


@cache
def twin(kind: type) -> type[Any]:
    """The twin of ``kind``, whose values a snapshot may contain.

    Raises:
        TypeError: A field accepts any value and is not narrowed.
    """
    fields: list[tuple[str, Any, Any]] = []
    for each in msgspec.structs.fields(kind):
        narrowed = NARROWED.get((kind, each.name), each.type)
        try:
            found = _saved(narrowed)
        except TypeError as exc:
            raise TypeError(f"{kind.__name__}.{each.name}: {exc}") from exc
        fields.append((each.name, found, _default(each, found)))
    return msgspec.defstruct(kind.__name__, fields, frozen=True, kw_only=True, omit_defaults=True)


def trimmed(plural: str, document: bytes) -> bytes:
    """One object of a collection as JSON, trimmed to the saved fields; fields of a wrong type are dropped.

    Raises:
        DecodeError: It is not an object.
    """
    if plural in (POLICIES, RECORDS, RULES, MAINTENANCES):
        return _trimmed_resource(document)
    found = kinds()[plural]
    kind = twin(found)
    decoder = _decoders.get(plural)
    if decoder is None:
        decoder = _decoders[plural] = msgspec.json.Decoder(kind)
    try:
        return _encoder.encode(decoder.decode(document))
    except (msgspec.ValidationError, RecursionError):
        return _encoder.encode(_in_part(kind, document))
    except msgspec.DecodeError as exc:
        raise DecodeError(found.__name__, str(exc)) from exc


def _in_part(kind: type[Any], document: bytes) -> Any:
    try:
        return decode_in_part(kind, document)[0]
    except RecursionError as exc:
        raise DecodeError(kind.__name__, "it is nested too deeply") from exc


_encoder = msgspec.json.Encoder()
_decoders: dict[str, msgspec.json.Decoder[Any]] = {}


def _saved(annotation: Any) -> Any:
    """A type with every struct in it replaced by its twin."""
    if annotation in (object, Any):
        raise TypeError("the type admits anything; name in NARROWED what of it a snapshot may hold")
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return annotation if annotation is _Annotations else twin(annotation)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is None:
        return annotation
    kept = tuple(each if each is Ellipsis or each is NoneType else _saved(each) for each in arguments)
    return Union[kept] if origin in (Union, UnionType) else origin[kept]  # noqa: UP007 - made at run time


def _default(field: Any, found: Any) -> Any:
    if field.default_factory is not msgspec.NODEFAULT and found is not _Annotations:
        return msgspec.field(name=field.encode_name, default_factory=field.default_factory)
    if isinstance(found, type) and issubclass(found, msgspec.Struct):
        return msgspec.field(name=field.encode_name, default=found())
    if field.default is NO_ENTRIES:
        return msgspec.field(name=field.encode_name, default_factory=dict)
    return msgspec.field(name=field.encode_name, default=field.default)


def _trimmed_resource(document: bytes) -> bytes:
    """A policy or record: spec and status unchanged, except for certificates and keys of extenders."""
    try:
        found = msgspec.json.decode(document, type=_Resource)
        metadata = _in_part(twin(ObjectMeta), msgspec.json.encode(found.metadata or {}))
    except (msgspec.DecodeError, RecursionError) as exc:
        raise DecodeError("an object of plimsoll.dev", str(exc)) from exc
    found.metadata = metadata
    scheduling = found.spec.get("scheduling") if isinstance(found.spec, dict) else None
    extenders = scheduling.get("extenders") if isinstance(scheduling, dict) else None
    for extender in extenders if isinstance(extenders, list) else ():
        tls = extender.get("tlsConfig") if isinstance(extender, dict) else None
        if isinstance(tls, dict):
            tls.pop("certData", None)
            tls.pop("keyData", None)
    return _encoder.encode(found)
