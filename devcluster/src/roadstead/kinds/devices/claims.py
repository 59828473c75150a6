"""Sets defaults of DeviceClasses, ResourceClaims and ResourceClaimTemplates, admits and checks them.

Source: Kubernetes v1.36 ``pkg/registry/resource/{deviceclass,resourceclaim,resourceclaimtemplate}``,
``pkg/registry/resource/utils.go``, ``pkg/apis/resource/validation/validation.go``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roadstead.kinds.checks.fields import forbidden, immutable, invalid
from roadstead.kinds.checks.metadata import annotation_key_causes, label_causes, qualified_name_faults
from roadstead.kinds.devices.claim_specs import (
    MOST,
    ExpressionFault,
    claim_spec_causes,
    configuration_causes,
    default_claim_spec,
    selector_causes,
)
from roadstead.kinds.devices.claim_statuses import claim_status_causes, default_status, drop_reports
from roadstead.kinds.devices.names import each
from roadstead.kinds.kind import Kind, StatusKind
from roadstead.values.status_errors import invalid as refused

if TYPE_CHECKING:
    from roadstead.kinds.kind import Objects
    from roadstead.values.resources import Obj
    from roadstead.values.status_errors import Cause

ADMIN = "resource.kubernetes.io/admin-access"
#: Metadata fields that a write of the status does not change.
_KEPT = ("labels", "annotations", "finalizers", "ownerReferences")


class DeviceClasses(Kind):
    """Classes of devices.

    Args:
        fault: of expressions.
    """

    counts_generation = True
    returns_deleted = True

    def __init__(self, fault: ExpressionFault) -> None:
        self._fault = fault

    def default(self, obj: Obj) -> None:
        """A spec is always present."""
        obj.setdefault("spec", {})

    def validate_create(self, obj: Obj) -> list[Cause]:
        """Faults of selectors, configuration and resource name."""
        return self._causes(obj["spec"], {})

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """As at creation; expressions that stay are not compiled again."""
        return self._causes(new["spec"], old["spec"])

    def _causes(self, spec: Obj, before: Obj) -> list[Cause]:
        stays = bool(before) and spec.get("selectors") == before.get("selectors")
        fault: ExpressionFault = (lambda _: "") if stays else self._fault
        causes = selector_causes(spec.get("selectors") or [], "spec.selectors", fault)
        causes += each(spec.get("config") or [], "spec.config", MOST, configuration_causes)
        name = spec.get("extendedResourceName")
        if name is not None and not _is_extended(name):
            message = "must be a valid extended resource name"
            causes.append(invalid("spec.extendedResourceName", name, message))
        return causes


def _is_extended(name: str) -> bool:
    """Whether a resource is neither a native one nor a quota of requests."""
    domain = name.partition("/")[0]
    native = "/" not in name or domain == "kubernetes.io" or domain.endswith(".kubernetes.io")
    if native or name.startswith("requests."):
        return False
    return not qualified_name_faults(f"requests.{name}")


class ResourceClaims(StatusKind):
    """Claims on devices; their spec is immutable.

    Args:
        fault: of expressions.
    """

    counts_generation = False
    returns_deleted = True

    def __init__(self, fault: ExpressionFault) -> None:
        self._fault = fault

    def default(self, obj: Obj) -> None:
        """Set defaults."""
        default_claim_spec(obj.setdefault("spec", {}))

    def admit_create(self, obj: Obj, objects: Objects) -> None:
        """Access for administrators needs a label of the namespace."""
        _admit_access(obj, obj["spec"], "spec", objects, "resourceclaims.resource.k8s.io")

    def validate_create(self, obj: Obj) -> list[Cause]:
        """Faults of the spec."""
        return claim_spec_causes(obj["spec"], "spec", self._fault)

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """The spec cannot change."""
        return immutable("spec", new["spec"], old["spec"])

    def prepare_status(self, new: Obj, old: Obj) -> None:
        """Reject changes of spec and metadata, and drop reports about released devices."""
        super().prepare_status(new, old)
        for field in _KEPT:
            if field in old["metadata"]:
                new["metadata"][field] = old["metadata"][field]
            else:
                new["metadata"].pop(field, None)
        status = new.setdefault("status", {})
        default_status(status)
        drop_reports(status, old.get("status") or {})

    def validate_status(self, new: Obj, old: Obj) -> list[Cause]:
        """Faults of allocation, consumers and reports."""
        return claim_status_causes(new, old)


class ResourceClaimTemplates(Kind):
    """Templates of claims; they cannot change.

    Args:
        fault: of expressions.
    """

    returns_deleted = True

    def __init__(self, fault: ExpressionFault) -> None:
        self._fault = fault

    def default(self, obj: Obj) -> None:
        """Set defaults."""
        spec = obj.setdefault("spec", {})
        spec.setdefault("metadata", {})
        default_claim_spec(spec.setdefault("spec", {}))

    def admit_create(self, obj: Obj, objects: Objects) -> None:
        """Access for administrators needs a label of the namespace."""
        key = "resourceclaimtemplates.resource.k8s.io"
        _admit_access(obj, obj["spec"]["spec"], "spec.spec", objects, key)

    def validate_create(self, obj: Obj) -> list[Cause]:
        """Faults of the claims that would be made."""
        spec = obj["spec"]
        causes = label_causes(spec["metadata"].get("labels"), "spec.metadata.labels")
        annotations = spec["metadata"].get("annotations") or {}
        causes += annotation_key_causes(annotations, "spec.metadata.annotations")
        return causes + claim_spec_causes(spec["spec"], "spec.spec", self._fault)

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """As at creation, and the spec cannot change."""
        return self.validate_create(new) + immutable("spec", new["spec"], old["spec"])


def _admit_access(obj: Obj, spec: Obj, at: str, objects: Objects, key: str) -> None:
    """Reject access for administrators in namespaces without the label for it.

    Raises:
        StatusError: 422.
    """
    requests = spec["devices"].get("requests") or []
    asked = [
        index for index, one in enumerate(requests) if (one.get("exactly") or {}).get("adminAccess") is True
    ]
    if not asked:
        return
    meta = obj["metadata"]
    namespace = objects.find("namespaces", None, meta["namespace"]) or {"metadata": {}}
    if (namespace["metadata"].get("labels") or {}).get(ADMIN) == "true":
        return
    why = f"admin access to devices requires the `{ADMIN}: true` label on the containing namespace"
    cause = forbidden(f"{at}.devices.requests[{asked[0]}].exactly.adminAccess", why)
    raise refused(objects.resource(key), meta.get("name", ""), [cause])
