"""Checks volumes of pods.

Claims, CSI and volumes without a storage provider are checked in detail; of older providers' volumes only
that each has one source.

Source: Kubernetes v1.36 ``pkg/apis/core/validation/validation.go``: ``ValidateVolumes`` and what it calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roadstead.kinds.checks.fields import duplicate, forbidden, invalid, label_name, one_of, required
from roadstead.kinds.podspec.environment import IN_FILES, field_causes, resource_field_causes
from roadstead.kinds.podspec.mounts import backstep_causes, file_path_causes, mode_causes
from roadstead.schemas import quantity_forms

if TYPE_CHECKING:
    from collections.abc import Callable

    from roadstead.values.resources import Obj
    from roadstead.values.status_errors import Cause

HOST_TYPES = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
#: The order of upstream's checks: the first source counts, further ones are faults.
_KINDS = (
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
)
_MISSPELT = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}  # upstream's message for a second one
_TOKEN_SECONDS = (600, 2**32)


def volume_causes(volumes: list[Obj], at: str, pod_name: str = "") -> tuple[dict[str, Obj], list[Cause]]:
    """Faults of a pod's volumes.

    Args:
        volumes: of the pod.
        at: their path.
        pod_name: the pod's name, if known; claims of ephemeral volumes are named after it.

    Returns:
        the valid volumes, keyed by name, and the causes.
    """
    sound: dict[str, Obj] = {}
    causes: list[Cause] = []
    made = {f"{pod_name}-{one.get('name', '')}" for one in volumes if pod_name and "ephemeral" in one}
    for index, volume in enumerate(volumes):
        here, name = f"{at}[{index}]", volume.get("name", "")
        found = _source_causes(volume, here)
        found += label_name(f"{here}.name", name) if name else [required(f"{here}.name")]
        if name in sound:
            found.append(duplicate(f"{here}.name", name))
        if not found:
            sound[name] = volume
        causes += found
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if claim in made:
            message = "must not reference a PVC that gets created for an ephemeral volume"
            causes.append(invalid(f"{here}.persistentVolumeClaim.claimName", claim, message))
    return sound, causes


def _source_causes(volume: Obj, at: str) -> list[Cause]:
    given = [kind for kind in _KINDS if volume.get(kind) is not None]
    if not given:
        return [required(at, "must specify a volume type")]
    causes = _CHECKS[given[0]](volume[given[0]], f"{at}.{given[0]}") if given[0] in _CHECKS else []
    message = "may not specify more than 1 volume type"
    return causes + [forbidden(f"{at}.{_MISSPELT.get(kind, kind)}", message) for kind in given[1:]]


def _empty_dir(source: Obj, at: str) -> list[Cause]:
    if "sizeLimit" in source and quantity_forms.value(source["sizeLimit"]) < 0:
        return [forbidden(f"{at}.sizeLimit", "SizeLimit field must be a valid resource quantity")]
    return []


def _host_path(source: Obj, at: str) -> list[Cause]:
    path = source.get("path", "")
    if not path:
        return [required(f"{at}.path")]
    return backstep_causes(path, f"{at}.path") + one_of(f"{at}.type", source.get("type", ""), HOST_TYPES)


def _needs(*fields: str) -> Callable[[Obj, str], list[Cause]]:
    def check(source: Obj, at: str) -> list[Cause]:
        return [required(f"{at}.{field}") for field in fields if not source.get(field)]

    return check


def _nfs(source: Obj, at: str) -> list[Cause]:
    causes = _needs("server", "path")(source, at)
    path = source.get("path", "")
    return (
        causes if path.startswith("/") else [*causes, invalid(f"{at}.path", path, "must be an absolute path")]
    )


def _keys(source: Obj, at: str, name: str) -> list[Cause]:
    """Faults of a config map or secret whose keys become files."""
    causes = [] if source.get(name) else [required(f"{at}.{name}")]
    causes += mode_causes(source.get("defaultMode"), f"{at}.defaultMode")
    for index, item in enumerate(source.get("items") or ()):
        causes += _item(item, f"{at}.items[{index}]")
    return causes


def _item(item: Obj, at: str) -> list[Cause]:
    causes = _needs("key", "path")(item, at)
    causes += file_path_causes(item.get("path", ""), f"{at}.path")
    return causes + mode_causes(item.get("mode"), f"{at}.mode")


def _config_map(source: Obj, at: str) -> list[Cause]:
    return _keys(source, at, "name")


def _secret(source: Obj, at: str) -> list[Cause]:
    return _keys(source, at, "secretName")


def _downward(source: Obj, at: str) -> list[Cause]:
    causes = mode_causes(source.get("defaultMode"), f"{at}.defaultMode")
    for item in source.get("items") or ():
        causes += _downward_file(item, at)
    return causes


def _downward_file(item: Obj, at: str) -> list[Cause]:
    causes = _needs("path")(item, at)
    causes += file_path_causes(item.get("path", ""), f"{at}.path")
    if item.get("fieldRef") is not None:
        causes += field_causes(item["fieldRef"], f"{at}.fieldRef", IN_FILES)
        if item.get("resourceFieldRef") is not None:
            message = "fieldRef and resourceFieldRef can not be specified simultaneously"
            causes.append(invalid(at, "resource", message))
    elif item.get("resourceFieldRef") is not None:
        causes += resource_field_causes(item["resourceFieldRef"], f"{at}.resourceFieldRef", in_file=True)
    else:
        causes.append(required(at, "one of fieldRef and resourceFieldRef is required"))
    return causes + mode_causes(item.get("mode"), f"{at}.mode")


def _projected(source: Obj, at: str) -> list[Cause]:
    causes = mode_causes(source.get("defaultMode"), f"{at}.defaultMode")
    paths: set[str] = set()
    for index, one in enumerate(source.get("sources") or ()):
        here = f"{at}.sources[{index}]"
        for kind in ("secret", "configMap", "downwardAPI"):
            if one.get(kind) is None:
                continue
            files, name = one[kind].get("items") or (), one[kind].get("name", "")
            if kind != "downwardAPI" and not name:
                causes.append(required(f"{here}.{kind}.name"))
            for number, item in enumerate(files):
                inner = f"{here}.{kind}"
                causes += (
                    _downward_file(item, inner)
                    if kind == "downwardAPI"
                    else _item(item, f"{inner}.items[{number}]")
                )
                path = item.get("path", "")
                if path in paths:
                    shown = path if kind == "downwardAPI" else name
                    causes.append(invalid(at, shown, "conflicting duplicate paths"))
                if path:
                    paths.add(path)
        if one.get("serviceAccountToken") is not None:
            causes += _token(one["serviceAccountToken"], at, f"{here}.serviceAccountToken")
        if len(one) > 1:
            causes.append(forbidden(here, "may not specify more than 1 volume type per source"))
    return causes


def _token(token: Obj, at: str, here: str) -> list[Cause]:
    causes: list[Cause] = []
    seconds, path = token.get("expirationSeconds", 0), token.get("path", "")
    if seconds < _TOKEN_SECONDS[0]:
        message = "may not specify a duration less than 10 minutes"
        causes.append(invalid(f"{here}.expirationSeconds", seconds, message))
    if seconds > _TOKEN_SECONDS[1]:
        message = "may not specify a duration larger than 2^32 seconds"
        causes.append(invalid(f"{here}.expirationSeconds", seconds, message))
    return causes + (file_path_causes(path, f"{at}.path") if path else [required(f"{at}.path")])


_CHECKS: dict[str, Callable[[Obj, str], list[Cause]]] = {
    "emptyDir": _empty_dir,
    "hostPath": _host_path,
    "secret": _secret,
    "configMap": _config_map,
    "nfs": _nfs,
    "persistentVolumeClaim": _needs("claimName"),
    "downwardAPI": _downward,
    "projected": _projected,
    "csi": _needs("driver"),
    "ephemeral": _needs("volumeClaimTemplate"),
}
