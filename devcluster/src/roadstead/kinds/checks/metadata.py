"""Checks ``metadata`` of every kind.

Source: apimachinery v1.36 ``api/validation/objectmeta.go``; messages are its own.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from roadstead.values.status_errors import Cause

if TYPE_CHECKING:
    from roadstead.values.resources import Obj

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAME_PART = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")

SUBDOMAIN_MESSAGE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
LABEL_MESSAGE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start "
    "and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
SERVICE_MESSAGE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
    "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for "
    "validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)
_QUALIFIED_MESSAGE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_NOT_QUALIFIED = (
    "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with "
    "an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' "
    "(e.g. 'example.com/MyName')"
)
_VALUE_MESSAGE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used "
    "for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_ANNOTATIONS_BYTES = 256 * 1024
BUILT_IN_FINALIZERS = (
    "orphan",
    "foregroundDeletion",
    "kubernetes",
    "customresourcecleanup.apiextensions.k8s.io",
)


@lru_cache(maxsize=8192)
def subdomain_faults(name: str) -> list[str]:
    """Faults of a string as a DNS subdomain."""
    faults = ["must be no more than 253 bytes"] if len(name) > 253 else []
    return faults if _SUBDOMAIN.fullmatch(name) else [*faults, SUBDOMAIN_MESSAGE]


@lru_cache(maxsize=8192)
def label_faults(name: str) -> list[str]:
    """Faults of a string as a DNS label."""
    faults = ["must be no more than 63 bytes"] if len(name) > 63 else []
    return faults if _LABEL.fullmatch(name) else [*faults, LABEL_MESSAGE]


def path_segment_faults(name: str) -> list[str]:
    """Faults of a string as a segment of a path."""
    if name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{sign}'" for sign in "/%" if sign in name]


@lru_cache(maxsize=8192)
def qualified_name_faults(key: str) -> list[str]:
    """Faults of a string as a label's or an annotation's key, a taint's key and so on."""
    prefix, slash, name = key.partition("/")
    if not slash:
        prefix, name = "", key
    elif "/" in name:
        return [_NOT_QUALIFIED]
    faults = []
    if slash and not prefix:
        faults.append("prefix part must be non-empty")
    elif prefix:
        faults += [f"prefix part {fault}" for fault in subdomain_faults(prefix)]
    if not name:
        faults.append("name part must be non-empty")
    elif len(name) > 63:
        faults.append("name part must be no more than 63 bytes")
    if not _NAME_PART.fullmatch(name):
        faults.append(_QUALIFIED_MESSAGE)
    return faults


@lru_cache(maxsize=8192)
def label_value_faults(value: str) -> list[str]:
    """Faults of a string as the value of a label."""
    faults = ["must be no more than 63 bytes"] if len(value) > 63 else []
    if value and not _NAME_PART.fullmatch(value):
        faults.append(_VALUE_MESSAGE)
    return faults


def invalid_value(field: str, value: object, fault: str) -> Cause:
    """The cause for an invalid string value."""
    return Cause(field, f'Invalid value: "{value}": {fault}')


def label_causes(labels: object, at: str) -> list[Cause]:
    """Faults of a map of labels."""
    causes = []
    for key, value in (labels or {}).items() if isinstance(labels, dict) else ():
        causes += [invalid_value(at, key, fault) for fault in qualified_name_faults(key)]
        causes += [invalid_value(at, value, fault) for fault in label_value_faults(value)]
    return causes


def metadata_causes(obj: Obj, *, namespaced: bool, name_faults: object = subdomain_faults) -> list[Cause]:
    """Faults of the metadata of a new object."""
    meta = obj["metadata"]
    causes = []
    assert callable(name_faults)
    name = meta.get("name") or ""
    generate = meta.get("generateName") or ""
    if generate:
        # Only the prefix is checked; the server appends valid characters.
        trimmed = f"{generate[:-2]}a" if len(generate) > 1 and generate.endswith("-") else generate
        causes += [invalid_value("metadata.generateName", generate, fault) for fault in name_faults(trimmed)]
    if not name:
        causes.append(
            Cause("metadata.name", "Required value: name or generateName is required", "FieldValueRequired")
        )
    else:
        causes += [invalid_value("metadata.name", name, fault) for fault in name_faults(name)]
    namespace = meta.get("namespace") or ""
    if namespaced:
        if not namespace:
            causes.append(Cause("metadata.namespace", "Required value", "FieldValueRequired"))
        else:
            causes += [
                invalid_value("metadata.namespace", namespace, fault) for fault in label_faults(namespace)
            ]
    elif namespace:
        causes.append(
            Cause("metadata.namespace", "Forbidden: not allowed on this type", "FieldValueForbidden")
        )
    generation = meta.get("generation", 0)
    if generation < 0:
        message = f"Invalid value: {generation}: must be greater than or equal to 0"
        causes.append(Cause("metadata.generation", message))
    return [*causes, *_shared_causes(meta)]


def annotation_key_causes(annotations: dict[str, str], at: str) -> list[Cause]:
    """Faults of the keys of annotations and of their total size."""
    causes = []
    for key in annotations:
        causes += [invalid_value(at, key, fault) for fault in qualified_name_faults(key.lower())]
    if sum(len(key) + len(value) for key, value in annotations.items()) > _ANNOTATIONS_BYTES:
        message = f"Too long: may not be more than {_ANNOTATIONS_BYTES} bytes"
        causes.append(Cause(at, message, "FieldValueTooLong"))
    return causes


def _shared_causes(meta: Obj) -> list[Cause]:
    causes = label_causes(meta.get("labels"), "metadata.labels")
    causes += annotation_key_causes(meta.get("annotations") or {}, "metadata.annotations")
    causes += _owner_causes(meta.get("ownerReferences") or [])
    for finalizer in meta.get("finalizers") or []:
        causes += [
            invalid_value("metadata.finalizers", finalizer, fault)
            for fault in qualified_name_faults(finalizer)
        ]
    return causes


def unqualified_finalizers(obj: Obj) -> list[tuple[int, str]]:
    """Unqualified finalizers with their indexes."""
    finalizers = obj["metadata"].get("finalizers") or ()
    return [
        (index, one)
        for index, one in enumerate(finalizers)
        if "/" not in one and one not in BUILT_IN_FINALIZERS
    ]


def _owner_causes(owners: list[Obj]) -> list[Cause]:
    causes = []
    controllers = 0
    for owner in owners:
        at = "metadata.ownerReferences"
        if not owner.get("apiVersion"):
            causes.append(Cause(f"{at}.apiVersion", 'Invalid value: "": version must not be empty'))
        causes += [
            Cause(f"{at}.{key}", f'Invalid value: "": {"" if key == "uid" else f"{key} "}must not be empty')
            for key in ("kind", "name", "uid")
            if not owner.get(key)
        ]
        if owner.get("apiVersion") == "v1" and owner.get("kind") == "Event":
            causes.append(
                Cause(
                    at, 'Invalid value: "/v1, Kind=Event": /v1, Kind=Event is disallowed from being an owner'
                )
            )
        if owner.get("controller"):
            controllers += 1
            if controllers > 1:
                causes.append(
                    Cause(
                        at,
                        "Invalid value: null: Only one reference can have Controller set to true",
                    )
                )
    return causes


#: Metadata fields that an update must not change once they are set.
_IMMUTABLE = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)


def metadata_update_causes(new: Obj, old: Obj) -> list[Cause]:
    """Faults of the metadata of an update."""
    causes = _shared_causes(new["metadata"])
    for key in _IMMUTABLE:
        left, right = new["metadata"].get(key), old["metadata"].get(key)
        if left != right:
            message = "null" if left is None else f"{left}" if isinstance(left, int) else f'"{left}"'
            causes.append(Cause(f"metadata.{key}", f"Invalid value: {message}: field is immutable"))
    if old["metadata"].get("deletionTimestamp"):
        added = [
            one
            for one in new["metadata"].get("finalizers") or []
            if one not in (old["metadata"].get("finalizers") or [])
        ]
        if added:
            listed = ", ".join(f'"{one}"' for one in added)
            causes.append(
                Cause(
                    "metadata.finalizers",
                    "Forbidden: no new finalizers can be added if the object is being deleted, found new "
                    f"finalizers []string{{{listed}}}",
                    "FieldValueForbidden",
                )
            )
    return causes
