"""Decodes the documents of lists and watches into objects of the model, as far as they are readable."""

import re
from typing import Any

import msgspec
from msgspec.structs import replace

from plimsoll.cluster.partial_objects import decode_in_part
from plimsoll.cluster.shared_objects import SharedNodes, SharedPods
from plimsoll.cluster.watch_events import (
    NodeAdded,
    NodeDeleted,
    NodeUpdated,
    ObjectAdded,
    ObjectDeleted,
    ObjectUpdated,
    PodAdded,
    PodDeleted,
    PodUpdated,
    WatchEvent,
)
from plimsoll.model.decoding import DecodeError, decode, read_with
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod import Pod

#: Maximum length of a name in the API server.
LONGEST_NAME = 253

#: Characters of an object's annotations that are kept; an API server takes 262,144 bytes.
MOST_ANNOTATIONS = 16_384

#: Field path prefix of problems that concern only the status.
IN_STATUS = "`$.status."


class NamedMeta(msgspec.Struct, rename="camel"):
    """The metadata that identifies an object."""

    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    annotations: dict[str, str] = {}


class NamedDocument(msgspec.Struct):
    """Any object, reduced to its name."""

    metadata: NamedMeta


NAMED = msgspec.json.Decoder(NamedDocument)


class ObjectState(msgspec.Struct, rename="camel"):
    """The metadata by which one state of an object is known."""

    name: str
    uid: str
    resource_version: str
    namespace: str = ""


class _StateDocument(msgspec.Struct):
    metadata: ObjectState


class _StateLine(msgspec.Struct):
    type: str
    object: _StateDocument


_STATE, _STATE_LINE = msgspec.json.Decoder(_StateDocument), msgspec.json.Decoder(_StateLine)


def state_of(document: bytes | msgspec.Raw) -> ObjectState | None:
    """Which state of an object a document has, at a fifth of the cost of decoding it; None if unreadable."""
    try:
        return read_with(_STATE, document).metadata
    except msgspec.MsgspecError:
        return None


#: A line of a streamed list as API servers write it: its kind, and then what identifies the object.
_BEGINNING = re.compile(
    rb'\{"type":"ADDED","object":\{"kind":"\w+","apiVersion":"[\w./-]+","metadata":\{"name":"([\w.:-]+)",'
    rb'(?:"generateName":"[\w.:-]+",)?(?:"namespace":"([\w-]+)",)?"uid":"([\w-]+)","resourceVersion":"(\d+)"[,}]'
)


def listed_state_of(line: bytes) -> ObjectState | None:
    """The same of a line of a streamed list; None for other lines than ADDED, too.

    The rest of a line that begins as usual is not read: that takes most of the time.
    """
    if (begun := _BEGINNING.match(line)) is not None:
        name, namespace, uid, version = begun.groups(b"")
        return ObjectState(name.decode(), uid.decode(), version.decode(), namespace.decode())
    try:
        event = read_with(_STATE_LINE, line)
    except msgspec.MsgspecError:
        return None
    return event.object.metadata if event.type == "ADDED" else None


def read_object(kind: type, document: bytes | msgspec.Raw) -> tuple[Any | None, str, list[str]]:
    """Decode one object.

    A pod on a node always counts; of all other objects only parts of the status may be missing.

    Returns:
        The object, None if it cannot be used; ``namespace/name``; the problems, in sentences.
    """
    problems: list[str] = []
    try:
        value: Any = decode(kind, document)
    except DecodeError as exc:
        value, problems = _in_part(kind, document)
        if value is None:
            try:
                named = read_with(NAMED, document).metadata
            except msgspec.MsgspecError:
                named = NamedMeta()
            return None, _key(named), [str(exc)]
    return with_short_annotations(value, len(document)), _key(value.metadata), problems


def with_short_annotations(value: Any, size: int) -> Any:
    """The object without its longest annotations, if they are too long together; ``size``: bytes of its JSON.

    No decision of ours reads long ones, and 8,000 pods with 256 KiB each would fill 2 GiB.
    """
    if size <= MOST_ANNOTATIONS:
        return value
    left, kept = MOST_ANNOTATIONS, dict[str, str]()
    for name, text in sorted(
        value.metadata.annotations.items(), key=lambda each: len(each[0]) + len(each[1])
    ):
        left -= len(name) + len(text)
        if left < 0:
            return replace(value, metadata=replace(value.metadata, annotations=kept))
        kept[name] = text
    return value


def _key(meta: Any) -> str:
    return f"{meta.namespace[:LONGEST_NAME]}/{meta.name[:LONGEST_NAME]}"


def _in_part(kind: type, document: bytes | msgspec.Raw) -> tuple[Any | None, list[str]]:
    """The object without its unreadable parts, None if that would mislead."""
    try:
        value, problems = decode_in_part(kind, document)
    except DecodeError:
        return None, []
    is_placed = isinstance(value, Pod) and value.node_name and value.uid
    if not is_placed and not all(IN_STATUS in problem for problem in problems):
        return None, []
    return value, [f"a part is left out: {problem}" for problem in problems]


class ObjectReader:
    """Decodes the documents of one collection and the lines of its watch.

    Args:
        kind: The type of its objects.
    """

    def __init__(self, kind: type) -> None:
        self._kind = kind
        line = msgspec.defstruct("Line", [("type", str), ("object", kind)], gc=False)
        self._lines: msgspec.json.Decoder[Any] = msgspec.json.Decoder(line)
        self._shared: Any = SharedPods() if kind is Pod else SharedNodes() if kind is Node else None

    def document(self, document: bytes | msgspec.Raw) -> tuple[Any | None, str, list[str]]:
        """As :func:`read_object`."""
        return read_object(self._kind, document)

    def line(self, line: bytes) -> tuple[str, Any] | None:
        """Type and object of a line or bookmark; None for an object that must be read part by part."""
        self.let_go()
        try:
            event = read_with(self._lines, line)
        except msgspec.ValidationError:  # an error, or an object that is readable only in part
            return None
        if event.type == "ERROR":
            return None
        return event.type, with_short_annotations(event.object, len(line))

    def gone(self, old: Any) -> None:
        """Note that an object was deleted."""
        if self._shared is not None:
            self._shared.gone(old)

    def let_go(self) -> None:
        """Drop what no object shares any more, some at each call: each line of a watch makes one."""
        if self._shared is not None:
            self._shared.let_go()

    def sharing(self, new: Any, old: Any) -> Any:
        """The new state of an object, sharing its parts with others; ``old``: the state before, or None."""
        return new if self._shared is None else self._shared.sharing(new, old)


#: The event types for a new, changed or deleted object.
_EVENTS: dict[type, tuple[Any, Any, Any]] = {
    Pod: (PodAdded, PodUpdated, PodDeleted),
    Node: (NodeAdded, NodeUpdated, NodeDeleted),
}


def event_of(old: Any, new: Any) -> WatchEvent:
    """The event for an object that changes from ``old`` to ``new``; one of them may be None."""
    added, updated, deleted = _EVENTS.get(
        type(new if old is None else old), (ObjectAdded, ObjectUpdated, ObjectDeleted)
    )
    event: WatchEvent = added(new) if old is None else deleted(old) if new is None else updated(old, new)
    return event
