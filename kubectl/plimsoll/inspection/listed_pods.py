"""Decodes the pods of a list; the labels, owners and specs of siblings become one object each.

The texts of siblings' specs differ in two places only: the node's name, and the five letters of the volume
with their token. So the text without these is the key of a spec, which is decoded once, and templates are
found by the identity of the parts (:class:`plimsoll.model.kinds.pod_info.Templates`). A pod is the same as
one that is decoded whole, but for volumes that no decision reads.
"""

import re
from collections.abc import Callable
from datetime import datetime
from typing import Generic, TypeVar

import msgspec
from msgspec.structs import replace

from plimsoll.cluster.listed_objects import read_object, with_short_annotations
from plimsoll.model.kinds.metadata import Int64, ObjectMeta, OwnerReference
from plimsoll.model.kinds.pod import Pod, PodSpec, PodStatus
from plimsoll.model.kinds.pod_info import deciding_volumes
from plimsoll.model.read_only_dict import NO_ENTRIES, sealed

PartT = TypeVar("PartT")

#: Bytes of texts whose values are kept; above that all are forgotten, and pods to come share new ones.
MOST_BYTES = 2**25

_ABSENT = msgspec.Raw()
_NODE = re.compile(rb'"nodeName"\s*:\s*"([^"\\]*)"')
_TOKEN = b"kube-api-access-"
_TOKENS = re.compile(_TOKEN + rb'[a-z0-9]{5}(?=")')
_ENCODER = msgspec.msgpack.Encoder()


class _Meta(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """ObjectMeta with the texts of what siblings share."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: Int64 = 0
    labels: msgspec.Raw = _ABSENT
    annotations: dict[str, str] = NO_ENTRIES
    owner_references: msgspec.Raw = _ABSENT
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    finalizers: tuple[str, ...] = ()


class _Pod(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    metadata: _Meta = _Meta()
    spec: msgspec.Raw = _ABSENT
    status: PodStatus = PodStatus()


class _Texts(Generic[PartT]):
    """The values of texts, each decoded once."""

    def __init__(self, decode: Callable[[bytes], PartT]) -> None:
        self._decode = decode
        self._known: dict[bytes, PartT] = {}
        self._size = 0

    def find(self, text: bytes) -> PartT | None:
        """The value that is kept for a text."""
        return self._known.get(text)

    def keep(self, text: bytes, value: PartT) -> None:
        """Keep the value of a text."""
        if self._size > MOST_BYTES:
            self._known, self._size = {}, 0
        self._known[text] = value
        self._size += len(text)

    def value(self, text: bytes) -> PartT:
        """The value of a text."""
        found = self._known.get(text)
        if found is None:
            found = sealed(self._decode(text))
            self.keep(text, found)
        return found


class ListedPods:
    """Decodes the pods of one list, which share their equal parts."""

    def __init__(self) -> None:
        self._pods = msgspec.json.Decoder(_Pod)
        self._labels = _Texts(msgspec.json.Decoder(dict[str, str]).decode)
        self._owners = _Texts(msgspec.json.Decoder(tuple[OwnerReference, ...]).decode)
        self._specs = _Texts(msgspec.json.Decoder(PodSpec).decode)

    def read(self, document: bytes | msgspec.Raw) -> tuple[Pod | None, str, list[str]]:
        """As :func:`plimsoll.cluster.listed_objects.read_object`."""
        try:
            parts = self._pods.decode(document)
            meta = parts.metadata
            pod = Pod(
                metadata=ObjectMeta(
                    name=meta.name,
                    namespace=meta.namespace,
                    uid=meta.uid,
                    resource_version=meta.resource_version,
                    generation=meta.generation,
                    labels=self._labels.value(bytes(meta.labels)) if meta.labels else NO_ENTRIES,
                    annotations=meta.annotations,
                    owner_references=(
                        self._owners.value(bytes(meta.owner_references)) if meta.owner_references else ()
                    ),
                    creation_timestamp=meta.creation_timestamp,
                    deletion_timestamp=meta.deletion_timestamp,
                    finalizers=meta.finalizers,
                ),
                spec=self._spec(bytes(parts.spec)) if parts.spec else PodSpec(),
                status=parts.status,
            )
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):  # it needs care: a null, for one
            return read_object(Pod, document)
        return with_short_annotations(pod, len(document)), pod.key, []

    def _spec(self, text: bytes) -> PodSpec:
        """The spec, of which equal ones share all parts."""
        place = _NODE.search(text)
        if place is None:
            return self._specs.value(text)
        key = text[: place.start(1)] + text[place.end(1) :]
        if _TOKEN in key:
            key = _TOKENS.sub(b"", key)
        node = place[1].decode()
        found = self._specs.find(key)
        if found is None:
            found = msgspec.json.decode(text, type=PodSpec)
            volumes = deciding_volumes(found)
            shape = sealed(replace(found, node_name="", volumes=volumes))
            # Another field may have that name, and another text look like a token's: these are no key.
            if found.node_name != node or _NODE.search(text, place.end()) or _TOKEN in _ENCODER.encode(shape):
                return found
            self._specs.keep(key, shape)
            found = shape
        return replace(found, node_name=node)
