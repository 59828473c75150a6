"""Sets defaults of ConfigMaps, Secrets, claims, volumes and storage classes and checks them.

Source: Kubernetes v1.36 ``pkg/registry/{core,storage}``, ``pkg/apis/{core,storage}/validation``.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from roadstead.kinds.checks.fields import (
    IMMUTABLE,
    config_key,
    forbidden,
    immutable,
    invalid,
    label_selector,
    not_among,
    one_of,
    required,
    subdomain_name,
)
from roadstead.kinds.kind import Kind, StatusKind
from roadstead.kinds.podspec.mounts import backstep_causes
from roadstead.kinds.podspec.placement import node_selector_causes
from roadstead.kinds.podspec.volumes import HOST_TYPES
from roadstead.schemas import quantity_forms

if TYPE_CHECKING:
    from collections.abc import Iterable
    from decimal import Decimal

    from roadstead.kinds.kind import Objects
    from roadstead.values.resources import Obj
    from roadstead.values.status_errors import Cause


class KeyedData(Kind):
    """ConfigMaps and Secrets: data by key, optionally immutable."""

    maps: tuple[str, ...] = ("data", "binaryData")

    def validate_create(self, obj: Obj) -> list[Cause]:
        """Faults of keys."""
        return [
            cause
            for field in self.maps
            for key in obj.get(field) or ()
            for cause in config_key(f"{field}[{key}]", key)
        ] + [
            invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
            for key in obj.get("data") or ()
            if key in (obj.get("binaryData") or ())
        ]

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """An immutable object keeps its data and stays immutable."""
        causes = self.validate_create(new)
        if old.get("immutable"):
            if not new.get("immutable"):
                causes.append(forbidden("immutable", "field is immutable when `immutable` is set"))
            causes += [
                forbidden(field, "field is immutable when `immutable` is set")
                for field in self.maps
                if new.get(field) != old.get(field)
            ]
        return causes


class Secrets(KeyedData):
    """Secrets."""

    maps = ("data",)

    def default(self, obj: Obj) -> None:
        """Encode ``stringData``; the type defaults to Opaque."""
        import_ = obj.pop("stringData", None) or {}
        if import_:
            encoded = {key: _base64(value) for key, value in import_.items()}
            obj["data"] = {**(obj.get("data") or {}), **encoded}
        obj.setdefault("type", "Opaque")

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """The type cannot change."""
        return super().validate_update(new, old) + immutable("type", new.get("type"), old.get("type"))

    def field_labels(self) -> frozenset[str]:
        """The names of ``fields``."""
        return frozenset(("type",))

    def fields(self, obj: Obj) -> dict[str, str]:
        """The values of field selectors."""
        return {"type": obj.get("type", "")}


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_ALONE = "may not use ReadWriteOncePod with other access modes"


def claim_causes(spec: Obj, at: str) -> list[Cause]:
    """Faults of a claim's spec, also of a StatefulSet's claim template."""
    causes: list[Cause] = []
    modes = spec.get("accessModes") or []
    if not modes:
        causes.append(required(f"{at}.accessModes", "at least 1 access mode is required"))
    causes += label_selector(spec.get("selector"), f"{at}.selector")
    causes += _mode_causes(modes, f"{at}.accessModes")
    size, here = (
        ((spec.get("resources") or {}).get("requests") or {}).get("storage"),
        f"{at}.resources[storage]",
    )
    if size is None:
        causes.append(required(here))
    elif quantity_forms.value(size) <= 0:
        causes.append(invalid(here, size, "must be greater than zero"))
    for field in ("storageClassName", "volumeAttributesClassName"):
        if spec.get(field):
            causes += subdomain_name(f"{at}.{field}", spec[field])
    return causes + one_of(f"{at}.volumeMode", spec.get("volumeMode"), ("Block", "Filesystem"))


def _mode_causes(modes: list[str], at: str) -> list[Cause]:
    causes = [cause for mode in modes for cause in one_of(at, mode, _MODES)]
    if "ReadWriteOncePod" in modes and any(mode in _MODES and mode != "ReadWriteOncePod" for mode in modes):
        causes.append(forbidden(at, _ALONE))
    return causes


def _shrunk(new: Obj, old: Obj) -> list[Cause]:
    """The requested size of a claim cannot shrink."""

    def amount(holder: Obj | None) -> Decimal:
        return quantity_forms.value((holder or {}).get("storage", "0"))

    size, was = (amount((one["spec"].get("resources") or {}).get("requests")) for one in (new, old))
    if size >= was or size > amount((old.get("status") or {}).get("capacity")):
        return []
    return [forbidden("spec.resources.requests.storage", "field can not be less than status.capacity")]


#: The annotation that named a claim's class before ``storageClassName`` did.
BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
#: The annotation of the class for claims that name none.
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


def default_class(classes: Iterable[Obj]) -> str | None:
    """The name of the default storage class; of several the youngest, then the first in the alphabet."""
    marked = [
        one["metadata"]
        for one in classes
        if (one["metadata"].get("annotations") or {}).get(DEFAULT_CLASS) == "true"
    ]
    marked.sort(key=lambda one: str(one["name"]))
    marked.sort(key=lambda one: str(one["creationTimestamp"]), reverse=True)
    return marked[0]["name"] if marked else None


class PersistentVolumeClaims(StatusKind):
    """Claims; a finalizer protects them, and few fields of their spec may change."""

    counts_generation = False
    returns_deleted = True

    def default(self, obj: Obj) -> None:
        """The volume mode defaults to Filesystem."""
        obj.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")

    def prepare_create(self, obj: Obj) -> None:
        """A new object is pending and has a finalizer."""
        obj["status"] = {"phase": "Pending"}
        finalizers = obj["metadata"].setdefault("finalizers", [])
        if "kubernetes.io/pvc-protection" not in finalizers:
            finalizers.append("kubernetes.io/pvc-protection")

    def admit_create(self, obj: Obj, objects: Objects) -> None:
        """A claim without class gets the default one."""
        spec, annotations = obj["spec"], obj["metadata"].get("annotations") or {}
        if spec.get("storageClassName") is None and BETA_CLASS not in annotations:
            name = default_class(objects.list("storageclasses.storage.k8s.io"))
            if name:
                spec["storageClassName"] = name

    def validate_create(self, obj: Obj) -> list[Cause]:
        """Faults of access modes, size and selectors."""
        return claim_causes(obj["spec"], "spec")

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """The size may grow, and volume and class can be set once."""

        def fixed(spec: Obj) -> Obj:
            changeable = ("resources", "volumeAttributesClassName")
            left = {key: value for key, value in spec.items() if key not in changeable}
            if not old["spec"].get("volumeName"):
                left.pop("volumeName", None)
            if old["spec"].get("storageClassName") is None:  # the default class may come later
                left.pop("storageClassName", None)
            return left

        if fixed(new["spec"]) != fixed(old["spec"]):
            message = (
                "spec is immutable after creation except resources.requests and volumeAttributesClassName "
                "for bound claims"
            )
            return [*self.validate_create(new), forbidden("spec", message), *_shrunk(new, old)]
        bound = (old.get("status") or {}).get("phase") == "Bound"
        if new["spec"].get("resources") != old["spec"].get("resources") and not bound:
            message = "spec is immutable after creation except resources.requests for bound claims"
            return [*self.validate_create(new), forbidden("spec", message), *_shrunk(new, old)]
        return self.validate_create(new) + _shrunk(new, old)


_SOURCES = (
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
)


def _source_causes(spec: Obj) -> list[Cause]:
    """Faults of the volume's source: exactly one; common sources are checked in detail."""
    given = [one for one in _SOURCES if spec.get(one) is not None]
    if not given:
        return [required("spec", "must specify a volume type")]
    first, message = given[0], "may not specify more than 1 volume type"
    causes = [forbidden(f"spec.{'cephFS' if one == 'cephfs' else one}", message) for one in given[1:]]
    needed = {
        "hostPath": ("path",),
        "nfs": ("server", "path"),
        "local": ("path",),
        "csi": ("driver", "volumeHandle"),
    }
    causes += [
        required(f"spec.{first}.{field}") for field in needed.get(first, ()) if not spec[first].get(field)
    ]
    if first in ("hostPath", "local") and spec[first].get("path"):
        causes += backstep_causes(spec[first]["path"], f"spec.{first}.path")
    if first == "hostPath":
        causes += one_of("spec.hostPath.type", spec[first].get("type", ""), HOST_TYPES)
    if first == "local" and spec.get("nodeAffinity") is None:
        causes.append(required("spec.nodeAffinity", "Local volume requires node affinity"))
    return causes


class PersistentVolumes(StatusKind):
    """Volumes."""

    counts_generation = False
    returns_deleted = True

    def default(self, obj: Obj) -> None:
        """Volumes default to Retain and Filesystem."""
        spec = obj.setdefault("spec", {})
        spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
        spec.setdefault("volumeMode", "Filesystem")
        if "hostPath" in spec:
            spec["hostPath"].setdefault("type", "")

    def prepare_create(self, obj: Obj) -> None:
        """A new object is pending and has a finalizer."""
        since = obj["metadata"].get("creationTimestamp")
        obj["status"] = {"phase": "Pending", "lastPhaseTransitionTime": since}
        finalizers = obj["metadata"].setdefault("finalizers", [])
        if "kubernetes.io/pv-protection" not in finalizers:
            finalizers.append("kubernetes.io/pv-protection")

    def validate_create(self, obj: Obj) -> list[Cause]:
        """Faults of access modes, size, source and affinity."""
        spec = obj["spec"]
        modes, capacity = spec.get("accessModes") or [], spec.get("capacity") or {}
        causes = [] if modes else [required("spec.accessModes")]
        causes += _mode_causes(modes, "spec.accessModes")
        if not capacity:
            causes.append(required("spec.capacity"))
        if set(capacity) != {"storage"}:
            causes.append(not_among("spec.capacity", spec.get("capacity"), ("storage",)))
        causes += [
            invalid(f"spec.capacity[{name}]", text, "must be greater than zero")
            for name, text in capacity.items()
            if quantity_forms.value(text) <= 0
        ]
        policies = ("Delete", "Recycle", "Retain")
        at = "spec.persistentVolumeReclaimPolicy"
        causes += one_of(at, spec["persistentVolumeReclaimPolicy"], policies)
        affinity = spec.get("nodeAffinity")
        if affinity is not None and affinity.get("required") is None:
            message = "must specify required node constraints"
            causes.append(required("spec.nodeAffinity.required", message))
        elif affinity is not None:
            causes += node_selector_causes(affinity["required"], "spec.nodeAffinity.required")
        causes += _source_causes(spec)
        if spec.get("storageClassName"):
            causes += subdomain_name("spec.storageClassName", spec["storageClassName"])
        return causes + one_of("spec.volumeMode", spec["volumeMode"], ("Block", "Filesystem"))

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """The source and the volume mode cannot change."""
        causes = self.validate_create(new)
        causes += immutable("volumeMode", new["spec"].get("volumeMode"), old["spec"].get("volumeMode"))
        if "nodeAffinity" in old["spec"] and new["spec"].get("nodeAffinity") != old["spec"]["nodeAffinity"]:
            message = f"{IMMUTABLE}, except for updating from beta label to GA"
            causes.append(invalid("nodeAffinity", new["spec"].get("nodeAffinity"), message))
        if any(new["spec"].get(name) != old["spec"].get(name) for name in _SOURCES):
            causes.append(
                forbidden(
                    "spec.persistentvolumesource", "spec.persistentvolumesource is immutable after creation"
                )
            )
        return causes


class StorageClasses(Kind):
    """Storage classes."""

    returns_deleted = True

    def default(self, obj: Obj) -> None:
        """Classes default to Delete and Immediate."""
        obj.setdefault("reclaimPolicy", "Delete")
        obj.setdefault("volumeBindingMode", "Immediate")

    def validate_create(self, obj: Obj) -> list[Cause]:
        """Faults of provisioner, parameters and modes."""
        causes = [] if obj.get("provisioner") else [required("provisioner")]
        causes += one_of("reclaimPolicy", obj["reclaimPolicy"], ("Delete", "Retain"))
        return causes + one_of(
            "volumeBindingMode", obj["volumeBindingMode"], ("Immediate", "WaitForFirstConsumer")
        )

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """Few fields may change."""
        causes = self.validate_create(new)
        for field in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"):
            causes += immutable(field, new.get(field), old.get(field))
        return causes
