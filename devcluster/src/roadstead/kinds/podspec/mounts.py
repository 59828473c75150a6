"""Checks mounts and block devices of a container, and paths of files.

Source: Kubernetes v1.36 ``pkg/apis/core/validation/validation.go``: ``ValidateVolumeMounts``,
``ValidateVolumeDevices``. As upstream, some causes name the list in place of its item.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roadstead.kinds.checks.fields import forbidden, invalid, missing, one_of, required

if TYPE_CHECKING:
    from roadstead.values.resources import Obj
    from roadstead.values.status_errors import Cause

_FILE_MODES = "must be a number between 0 and 0777 (octal), both inclusive"


def backstep_causes(path: str, at: str) -> list[Cause]:
    """A path must not lead upwards."""
    return [invalid(at, path, "must not contain '..'")] if ".." in path.split("/") else []


def descending_causes(path: str, at: str) -> list[Cause]:
    """A path must be relative and not lead upwards."""
    causes = [invalid(at, path, "must be a relative path")] if path.startswith("/") else []
    return causes + backstep_causes(path, at)


def file_path_causes(path: str, at: str) -> list[Cause]:
    """Faults of the path of a file that the kubelet writes; names that begin with two dots are reserved."""
    causes = descending_causes(path, at)
    if path.startswith("..") and not path.startswith("../"):
        causes.append(invalid(at, path, "must not start with '..'"))
    return causes


def mode_causes(mode: int | None, at: str) -> list[Cause]:
    """Faults of the mode of a file."""
    return [] if mode is None or 0 <= mode <= 0o777 else [invalid(at, mode, _FILE_MODES)]


def mount_causes(container: Obj, at: str, volumes: dict[str, Obj]) -> list[Cause]:
    """Faults of a container's mounts and devices.

    Args:
        container: the container.
        at: its path.
        volumes: the valid volumes of the pod, keyed by name.
    """
    mounts, devices = container.get("volumeMounts") or [], container.get("volumeDevices") or []
    causes = _mounts(container, mounts, f"{at}.volumeMounts", volumes, devices)
    return causes + _devices(devices, f"{at}.volumeDevices", volumes, mounts)


def _mounts(
    container: Obj, mounts: list[Obj], at: str, volumes: dict[str, Obj], devices: list[Obj]
) -> list[Cause]:
    causes: list[Cause] = []
    paths: set[str] = set()
    for index, mount in enumerate(mounts):
        here, name, path = f"{at}[{index}]", mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            causes.append(required(f"{here}.name"))
        if name not in volumes:
            causes.append(missing(f"{here}.name", name))
        if not path:
            causes.append(required(f"{here}.mountPath"))
        if path in paths:
            causes.append(invalid(f"{here}.mountPath", path, "must be unique"))
        paths.add(path)
        if any(device.get("name", "") == name for device in devices):
            causes.append(invalid(f"{here}.name", name, "must not already exist in volumeDevices"))
        if any(device.get("devicePath", "") == path for device in devices):
            message = "must not already exist as a path in volumeDevices"
            causes.append(invalid(f"{here}.mountPath", path, message))
        if mount.get("subPath"):
            causes += descending_causes(mount["subPath"], f"{at}.subPath")
        if expression := mount.get("subPathExpr"):
            if mount.get("subPath"):
                message = "subPathExpr and subPath are mutually exclusive"
                causes.append(invalid(f"{here}.subPathExpr", expression, message))
            causes += descending_causes(expression, f"{at}.subPathExpr")
        causes += _propagation_causes(mount, container, f"{at}.mountPropagation")
        causes += _read_only_causes(mount, f"{at}.recursiveReadOnly")
    return causes


def _propagation_causes(mount: Obj, container: Obj, at: str) -> list[Cause]:
    propagation = mount.get("mountPropagation")
    if propagation is None:
        return []
    causes = one_of(at, propagation, ("Bidirectional", "HostToContainer", "None"))
    if propagation == "Bidirectional" and not (container.get("securityContext") or {}).get("privileged"):
        message = "Bidirectional mount propagation is available only to privileged containers"
        causes.append(forbidden(at, message))
    return causes


def _read_only_causes(mount: Obj, at: str) -> list[Cause]:
    wanted = mount.get("recursiveReadOnly")
    if wanted is None or wanted == "Disabled":
        return []
    causes = one_of(at, wanted, ("Disabled", "Enabled", "IfPossible"))
    if causes:
        return causes
    if not mount.get("readOnly"):
        causes.append(forbidden(at, "may only be specified when readOnly is true"))
    if mount.get("mountPropagation") not in (None, "None"):
        message = "may only be specified when mountPropagation is None or not specified"
        causes.append(forbidden(at, message))
    return causes


def _devices(devices: list[Obj], at: str, volumes: dict[str, Obj], mounts: list[Obj]) -> list[Cause]:
    causes: list[Cause] = []
    names: set[str] = set()
    paths: set[str] = set()
    for index, device in enumerate(devices):
        here, name, path = f"{at}[{index}]", device.get("name", ""), device.get("devicePath", "")
        if not name:
            causes.append(required(f"{here}.name"))
        if name in names:
            causes.append(invalid(f"{here}.name", name, "must be unique"))
        if name not in volumes:
            causes.append(missing(f"{here}.name", name))
        elif not {"persistentVolumeClaim", "ephemeral"} & volumes[name].keys():
            message = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            causes.append(invalid(f"{here}.name", name, message))
        if not path:
            causes.append(required(f"{here}.devicePath"))
        if path in paths:
            causes.append(invalid(f"{here}.devicePath", path, "must be unique"))
        if backstep_causes(path, ""):
            causes.append(invalid(f"{here}.devicePath", path, "can not contain backsteps ('..')"))
        else:
            paths.add(path)
        if any(mount.get("name", "") == name for mount in mounts):
            causes.append(invalid(f"{here}.name", name, "must not already exist in volumeMounts"))
        if any(mount.get("mountPath", "") == path for mount in mounts):
            message = "must not already exist as a path in volumeMounts"
            causes.append(invalid(f"{here}.devicePath", path, message))
        if name:
            names.add(name)
    return causes
