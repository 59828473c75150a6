"""Workloads and pods, reduced to the data that shows which programs run: images and commands."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from plimsoll.model.kinds.pod import Pod

#: The suffix of an image's name for one architecture.
_MACHINE = re.compile(r"-(amd64|arm64|arm|ppc64le|s390x)$")

#: A tag that is a version.
_VERSION = re.compile(r"^v?\d+\.\d+\.\d+([-.+][0-9A-Za-z.-]+)?$")

VERSION_LABEL = "app.kubernetes.io/version"

Document = Mapping[str, Any]


class RunningWorkload(Struct, frozen=True):
    """A Deployment, StatefulSet, DaemonSet, CronJob or pod.

    Attributes:
        ready: Number of its ready pods.
        images: The images of its containers.
        commands: For each container, command and arguments in one.
        keys: Annotations and labels of the workload and of its pod template.
    """

    kind: str
    namespace: str
    name: str
    labels: Mapping[str, str]
    account: str
    ready: int
    images: tuple[str, ...]
    commands: tuple[tuple[str, ...], ...]
    keys: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """Its kind and key, such as ``Deployment plimsoll/plimsoll``."""
        return f"{self.kind} {self.namespace}/{self.name}"

    @property
    def image_words(self) -> frozenset[str]:
        """The parts of its images' paths, without registry, tag and digest."""
        return frozenset(word for image in self.images for word in image_words(image))

    @property
    def programs(self) -> frozenset[str]:
        """Base names of the first two words of each command, because of ``hyperkube kube-scheduler``."""
        return frozenset(
            word.rpartition("/")[2] for command in self.commands for word in command[:2] if word[:1] != "-"
        )

    @property
    def version(self) -> str:
        """The version from its image's tag, else from its label; "" if neither has one."""
        for image in self.images:
            tag = image.partition("@")[0].rpartition("/")[2].partition(":")[2]
            if _VERSION.match(tag):
                return tag.removeprefix("v")
        return self.labels.get(VERSION_LABEL, "").removeprefix("v")

    def flag(self, name: str) -> str:
        """The value of a flag in its containers' commands, "" without it."""
        for command in self.commands:
            for place, word in enumerate(command):
                if word == name and place + 1 < len(command):
                    return command[place + 1]
                if word.startswith(f"{name}="):
                    return word.partition("=")[2]
        return ""


def workload(kind: str, document: Document) -> RunningWorkload:
    """A workload from an API object; malformed fields count as absent."""
    metadata, status, spec = (_mapping(document.get(key)) for key in ("metadata", "status", "spec"))
    pod, template = spec, metadata
    if kind != "Pod":
        job = _mapping(_mapping(spec.get("jobTemplate")).get("spec")) if kind == "CronJob" else spec
        made = _mapping(job.get("template"))
        pod, template = _mapping(made.get("spec")), _mapping(made.get("metadata"))
    containers = [each for each in pod.get("containers") or () if isinstance(each, Mapping)]
    return RunningWorkload(
        kind,
        str(metadata.get("namespace", "")),
        str(metadata.get("name", "")),
        {str(key): str(value) for key, value in _mapping(metadata.get("labels")).items()},
        str(pod.get("serviceAccountName") or "default"),
        _ready(kind, status),
        tuple(str(each.get("image", "")) for each in containers),
        tuple(
            tuple(map(str, (*(each.get("command") or ()), *(each.get("args") or ())))) for each in containers
        ),
        tuple(dict.fromkeys((*keys_of(metadata), *keys_of(template)))),
    )


def keys_of(metadata: Document) -> tuple[str, ...]:
    """The annotations and labels in metadata."""
    return tuple(str(key) for name in ("annotations", "labels") for key in _mapping(metadata.get(name)))


def running_pod(pod: Pod) -> RunningWorkload:
    """A pod of the mirrored cluster; its commands are not mirrored."""
    return RunningWorkload(
        "Pod",
        pod.namespace,
        pod.name,
        pod.metadata.labels,
        "",
        int(pod.is_ready),
        tuple(each.image for each in pod.spec.containers),
        (),
    )


def _ready(kind: str, status: Document) -> int:
    match kind:
        case "DaemonSet":
            return int(status.get("numberReady") or 0)
        case "CronJob":
            return len(status.get("active") or ())
        case "Pod":
            conditions = status.get("conditions") or ()
            return int(
                any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)
            )
    return int(status.get("readyReplicas") or 0)


def _mapping(value: object) -> Document:
    return value if isinstance(value, Mapping) else {}


def image_words(image: str) -> Iterator[str]:
    """The parts of an image's path, without registry, tag, digest and architecture."""
    path = image.partition("@")[0]
    parts: Sequence[str] = path.split("/")
    if len(parts) > 1 and ("." in parts[0] or ":" in parts[0] or parts[0] == "localhost"):
        parts = parts[1:]
    for part in parts:
        yield _MACHINE.sub("", part.partition(":")[0])
