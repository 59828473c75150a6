"""Validates CustomResourceDefinitions.

Source: apiextensions-apiserver v1.36 ``pkg/apis/apiextensions/validation/validation.go``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from roadstead.definitions.rules import path_steps
from roadstead.definitions.schema_checks import schema_causes
from roadstead.kinds.checks.metadata import SERVICE_MESSAGE, subdomain_faults
from roadstead.kinds.webhooks import client_causes, review_causes
from roadstead.schemas.field_errors import OMITTED, duplicate, forbidden, invalid, not_supported, required
from roadstead.schemas.json_paths import PathError, path
from roadstead.schemas.structural import values_schema

if TYPE_CHECKING:
    from collections.abc import Iterable

    from roadstead.values.resources import Obj
    from roadstead.values.status_errors import Cause

Causes = list["Cause"]

_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_SELECTABLE_TYPES = ("boolean", "integer", "string")
_MOST_SELECTABLE = 8


def definition_causes(obj: Obj) -> Causes:
    """Causes for which a new definition is invalid."""
    spec = obj.get("spec") or {}
    names, group = spec.get("names") or {}, spec.get("group", "")
    wanted = f"{names.get('plural', '')}.{group}"
    causes = []
    if obj["metadata"].get("name", "") != wanted:
        text = 'must be spec.names.plural+"."+spec.group'
        causes.append(invalid("metadata.name", obj["metadata"].get("name", ""), text))
    return [*causes, *_spec_causes(spec)]


def definition_update_causes(new: Obj, old: Obj, *, established: bool) -> Causes:
    """Causes for which a change of a definition is invalid."""
    causes = _spec_causes(new.get("spec") or {})
    fixed: list[tuple[str, ...]] = [("group",), ("names", "plural")]
    if established:
        fixed += [("scope",), ("names", "kind")]
    for steps in fixed:
        before, after = old["spec"], new.get("spec") or {}
        for step in steps:
            before, after = before.get(step) or {}, after.get(step) or {}
        if before != after:
            causes.append(invalid(f"spec.{'.'.join(steps)}", after or "", "field is immutable"))
    served = {version["name"] for version in (new.get("spec") or {}).get("versions") or []}
    for index, stored in enumerate((old.get("status") or {}).get("storedVersions") or []):
        if stored not in served:
            text = (
                f"missing from spec.versions; {stored} was previously a storage version, and must remain in "
                "spec.versions until a storage migration ensures no data remains persisted in "
                f"{stored} and removes {stored} from status.storedVersions"
            )
            causes.append(invalid(f"status.storedVersions[{index}]", stored, text))
    return causes


def _label_causes(value: str, field: str, prefix: str = "") -> Causes:
    faults = ["must be no more than 63 bytes"] if len(value) > 63 else []
    if not _LABEL.fullmatch(value.lower() if prefix else value):
        faults.append(SERVICE_MESSAGE)
    return [invalid(field, value, prefix + ",".join(faults))] if faults else []


def _spec_causes(spec: Obj) -> Causes:
    causes: Causes = []
    group = spec.get("group", "")
    if not group:
        causes.append(required("spec.group"))
    elif faults := subdomain_faults(group):
        causes.append(invalid("spec.group", group, ",".join(faults)))
    elif "." not in group:
        causes.append(invalid("spec.group", group, "should be a domain with at least one dot"))
    scope = spec.get("scope", "")
    if not scope:
        causes.append(required("spec.scope"))
    elif scope not in ("Cluster", "Namespaced"):
        causes.append(not_supported("spec.scope", scope, ("Cluster", "Namespaced")))
    if spec.get("preserveUnknownFields"):
        text = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
            "spec.versions[*].schema instead"
        )
        causes.append(invalid("spec.preserveUnknownFields", spec["preserveUnknownFields"], text))
    causes += _versions_causes(spec.get("versions") or [])
    causes += _names_causes(spec.get("names") or {})
    return causes + _conversion_causes(spec)


def _versions_causes(versions: list[Obj]) -> Causes:
    causes: Causes = []
    for index, version in enumerate(versions):
        causes += _version_causes(version, f"spec.versions[{index}]")
    names = [version.get("name") for version in versions]
    if len(set(names)) < len(names):
        causes.append(invalid("spec.versions", OMITTED, "must contain unique version names"))
    if sum(bool(version.get("storage")) for version in versions) != 1:
        text = "must have exactly one version marked as storage version"
        causes.append(invalid("spec.versions", OMITTED, text))
    return causes


def _version_causes(version: Obj, at: str) -> Causes:
    causes = _label_causes(version.get("name", ""), f"{at}.name")
    warning = version.get("deprecationWarning")
    if warning is not None and not version.get("deprecated"):
        causes.append(invalid(f"{at}.deprecationWarning", warning, "can only be set for deprecated versions"))
    elif warning is not None and not 0 < len(warning) <= 256:
        causes.append(invalid(f"{at}.deprecationWarning", warning, "must have 1 to 256 characters"))
    subresources = version.get("subresources") or {}
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    where = f"{at}.schema.openAPIV3Schema"
    if schema is None:
        causes.append(required(where, "schemas are required"))
    else:
        causes += schema_causes(schema, where, with_status=subresources.get("status") is not None)
        causes += _selectable_causes(version.get("selectableFields") or [], schema, f"{at}.selectableFields")
    if subresources.get("scale") is not None:
        causes += _scale_causes(subresources["scale"], f"{at}.subresources.scale")
    for index, column in enumerate(version.get("additionalPrinterColumns") or []):
        causes += _column_causes(column, f"{at}.additionalPrinterColumns[{index}]")
    return causes


def _scale_causes(scale: Obj, at: str) -> Causes:
    causes = []
    for key, starts in (
        ("specReplicasPath", (".spec.",)),
        ("statusReplicasPath", (".status.",)),
        ("labelSelectorPath", (".spec.", ".status.")),
    ):
        given = scale.get(key)
        if not given:
            if key != "labelSelectorPath":
                causes.append(required(f"{at}.{key}"))
        elif path_steps(given) is None or "[" in given:
            causes.append(invalid(f"{at}.{key}", given, "should be a json path in dot notation"))
        elif not given.startswith(starts):
            message = " or ".join(start.rstrip(".") for start in starts)
            causes.append(invalid(f"{at}.{key}", given, f"should be a json path under {message}"))
    return causes


def _column_causes(column: Obj, at: str) -> Causes:
    causes = []
    if not column.get("name"):
        causes.append(required(f"{at}.name"))
    types, kind = ",".join(_COLUMN_TYPES), column.get("type")
    if not kind:
        causes.append(required(f"{at}.type", f"must be one of {types}"))
    elif kind not in _COLUMN_TYPES:
        causes.append(invalid(f"{at}.type", kind, f"must be one of {types}"))
    form = column.get("format")
    if form and form not in _COLUMN_FORMATS:
        causes.append(invalid(f"{at}.format", form, f"must be one of {','.join(_COLUMN_FORMATS)}"))
    leads = column.get("jsonPath")
    if not leads:
        return [*causes, required(f"{at}.JSONPath")]
    try:
        path(leads)
    except PathError as error:
        causes.append(invalid(f"{at}.JSONPath", leads, str(error)))
    return causes


def _selectable_causes(fields: list[Obj], schema: Obj, at: str) -> Causes:
    causes: Causes = []
    seen = set()
    for index, field in enumerate(fields):
        where, leads = f"{at}[{index}].jsonPath", field.get("jsonPath", "")
        steps = path_steps(leads) if "[" not in leads else None
        if not leads:
            causes.append(required(where))
        elif steps is None:
            causes.append(invalid(where, leads, "is an invalid path: array notation is not allowed"))
        elif (kind := _type_at(schema, steps)) is None:
            causes.append(invalid(where, leads, "is an invalid path: does not refer to a valid field"))
        elif steps[0] == "metadata":
            causes.append(invalid(where, leads, "must not point to fields in metadata"))
        elif kind not in _SELECTABLE_TYPES:
            text = (
                "must point to a field of type string, boolean or integer. Enum string fields and strings "
                "with formats are allowed."
            )
            causes.append(invalid(where, leads, text))
        elif leads in seen:
            causes.append(duplicate(where, leads))
        seen.add(leads)
    if len(seen) > _MOST_SELECTABLE:
        text = f"Too many: {len(seen)}: must have at most {_MOST_SELECTABLE} items"
        causes.append(forbidden(at, text))
    return causes


def _type_at(schema: Obj, steps: Iterable[str]) -> str | None:
    for step in steps:
        inner = (schema.get("properties") or {}).get(step) or values_schema(schema)
        if inner is None:
            return None
        schema = inner
    return str(schema.get("type", ""))


def _names_causes(names: Obj) -> Causes:
    causes: Causes = []
    for key in ("plural", "singular", "kind", "listKind"):
        value = names.get(key, "")
        if not value:
            causes.append(required(f"spec.names.{key}"))
        else:
            mixed = "may have mixed case, but should otherwise match: " if key.endswith("ind") else ""
            causes += _label_causes(value, f"spec.names.{key}", mixed)
    for key in ("shortNames", "categories"):
        for index, value in enumerate(names.get(key) or []):
            causes += _label_causes(value, f"spec.names.{key}[{index}]")
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        text = "kind and listKind may not be the same"
        causes.append(invalid("spec.names.listKind", names["listKind"], text))
    return causes


def _conversion_causes(spec: Obj) -> Causes:
    conversion, at = spec.get("conversion") or {}, "spec.conversion"
    strategy, webhook = conversion.get("strategy", "None"), conversion.get("webhook") or {}
    client = webhook.get("clientConfig")
    if strategy == "None":
        text = "should not be set when strategy is not set to Webhook"
        return [forbidden(f"{at}.webhookClientConfig", text)] if webhook else []
    if strategy != "Webhook":
        return [not_supported(f"{at}.strategy", strategy, ("None", "Webhook"))]
    causes = []
    if client is None:
        causes.append(required(f"{at}.webhookClientConfig", "required when strategy is set to Webhook"))
    else:
        causes += client_causes(client, f"{at}.webhookClientConfig")
    versions = webhook.get("conversionReviewVersions") or []
    return causes + review_causes(versions, f"{at}.conversionReviewVersions")
