"""Reads the output of ``kubectl get … -o json`` and ``-o yaml``: objects, Lists, documents; also audit logs.

Kinds that no decision reads are counted and left out. Readings of the metrics API become usage. An object in
two files counts once; the later file's version is used.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import msgspec
import yaml
from pydantic import ValidationError

from plimsoll.api.v1alpha1.audit import AuditedEviction
from plimsoll.cluster.watched_resources import CORE_COMPOSITES, CORE_POD_GROUPS, GROUP_OWNERS
from plimsoll.framework.field_errors import field_errors
from plimsoll.model.kinds.metadata import ApiObject
from plimsoll.model.kinds.owned_group import OWNERS
from plimsoll.model.kinds.pod_group import CORE
from plimsoll.model.quantity import nanos
from plimsoll.policies.extensions import declared_here
from plimsoll.ports.usage import UsageReading
from plimsoll.snapshots.content import MAINTENANCES, POLICIES, RECORDS, SnapshotContent, UsageContent
from plimsoll.snapshots.errors import SnapshotError
from plimsoll.snapshots.identity import Identity, Names
from plimsoll.snapshots.saved_fields import KINDS

#: Plural by kind and API group; a Service of another API group does not match.
_GROUPS = {
    "apps": ("ReplicaSet", "StatefulSet", "Deployment"),
    "policy": ("PodDisruptionBudget",),
    "scheduling.k8s.io": ("PriorityClass",),
    "storage.k8s.io": ("StorageClass", "CSINode", "CSIDriver", "CSIStorageCapacity", "VolumeAttachment"),
    "autoscaling.k8s.io": ("VerticalPodAutoscaler",),
    "plimsoll.dev": ("PodGroup",),
}
_GROUP_OF = {kind: group for group, kinds in _GROUPS.items() for kind in kinds}
_PLURALS = {
    **{(_GROUP_OF.get(kind.__name__, ""), kind.__name__): plural for plural, kind in KINDS.items()},
    **{(each.api_version.partition("/")[0], each.kind): each.resource for each in OWNERS},
    (CORE, "PodGroup"): CORE_POD_GROUPS[0].name,
    (CORE, "CompositePodGroup"): CORE_COMPOSITES[0].name,
    ("plimsoll.dev", "SchedulingPolicy"): POLICIES,
    ("plimsoll.dev", "Eviction"): RECORDS,
    ("plimsoll.dev", "NodeMaintenance"): MAINTENANCES,
}
_CLUSTER_SCOPED = frozenset(
    {
        "nodes",
        "namespaces",
        "priorityclasses",
        "persistentvolumes",
        "storageclasses",
        "csinodes",
        "csidrivers",
        "volumeattachments",
        POLICIES,
        MAINTENANCES,
    }
)
_METRICS = "metrics.k8s.io"

#: Maximum nesting of YAML; the parser itself has no bound.
_DEEPEST = 100

#: Maximum number of characters of input repeated in a sentence.
_SHOWN = 200

_NOT_THERE = "the files have none"

#: Collections whose absence is not reported: they count only where a policy derives groups.
_UNREPORTED = frozenset(resource.name for resource in GROUP_OWNERS)


class _Head(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    kind: str | None = None
    api_version: str | None = None


class _List(_Head, frozen=True, kw_only=True, rename="camel"):
    items: list[msgspec.Raw] | None = None


class Dump:
    """Collects the objects of several files."""

    def __init__(self) -> None:
        self._objects: dict[str, dict[tuple[str, str], bytes]] = {}
        self._readings: dict[str, list[UsageReading]] = {"NodeMetrics": [], "PodMetrics": []}
        self.ignored: Counter[str] = Counter()

    def add_json(self, text: bytes, place: str) -> None:
        """Add the objects of a JSON text: an object, a List, an array, or one of these per line.

        Raises:
            SnapshotError: It has another form.
        """
        try:
            text.decode()
        except UnicodeDecodeError as exc:
            raise SnapshotError(place, f"it is not text in UTF-8: {exc.reason} at byte {exc.start}") from exc
        try:
            documents = [msgspec.json.decode(text, type=msgspec.Raw)]
        except (msgspec.DecodeError, RecursionError) as exc:
            documents = _lines_of(text, exc, place)
        for document in documents:
            self._add(bytes(document), place, _Head())

    def add_yaml(self, text: bytes, place: str) -> None:
        """Add the objects of a YAML text.

        Raises:
            SnapshotError: It cannot be read as objects.
        """
        for document in yaml_documents(text, place):
            if document is None:
                continue
            try:
                as_json = msgspec.json.encode(document)
            except (TypeError, ValueError, RecursionError) as exc:
                raise SnapshotError(place, f"it cannot be read as an object: {exc}") from exc
            self._add(as_json, place, _Head())

    def content(self, taken: float, source: str) -> SnapshotContent:
        """The collected content.

        Raises:
            SnapshotError: It has no usable object.
        """
        if not any(self._objects.values()):
            others = ", ".join(f"{count} {kind}" for kind, count in self.ignored.most_common(3))
            raise SnapshotError(
                source,
                "there is no object that scheduling reads"
                + (f" (only {others})" if others else "")
                + "; kubectl get nodes,pods -A -o json prints some",
            )
        known = {*self._objects, *_UNREPORTED}
        absent = {plural: _NOT_THERE for plural in (*KINDS, POLICIES, RECORDS) if plural not in known}
        usage = UsageContent(
            tuple(self._readings["NodeMetrics"]),
            tuple(self._readings["PodMetrics"]),
            "" if any(self._readings.values()) else _NOT_THERE,
        )
        objects = {plural: tuple(found.values()) for plural, found in self._objects.items()}
        return SnapshotContent(taken, source, objects, usage, absent)

    def _add(self, document: bytes, place: str, within: _Head) -> None:
        if document.lstrip()[:1] == b"[":
            for item in msgspec.json.decode(document, type=list[msgspec.Raw]):
                self._add(bytes(item), place, _Head())
            return
        try:
            found = msgspec.json.decode(document, type=_List)
        except (msgspec.DecodeError, RecursionError) as exc:
            raise SnapshotError(place, f"it holds what is no Kubernetes object: {exc}") from exc
        kind = found.kind or (within.kind or "").removesuffix("List")
        version = found.api_version or within.api_version or ""
        if found.items is not None and kind.endswith("List"):
            head = _Head(kind=kind, api_version=version)
            for item in found.items:
                self._add(bytes(item), place, head)
            return
        if not kind:
            raise SnapshotError(
                place, 'an object has no "kind"; print it with kubectl get -o json or -o yaml'
            )
        self._keep(document, kind, version.rpartition("/")[0], place)

    def _keep_audited(self, document: bytes, place: str) -> None:
        """Add a line of the audit log as the record that it was; a name that was used twice gets a suffix."""
        try:
            line = AuditedEviction.model_validate_json(document)
        except ValidationError as exc:
            problems = "; ".join(map(str, field_errors(exc, model=AuditedEviction)))
            raise SnapshotError(place, f"a line of the audit log cannot be read: {problems}") from exc
        known = self._objects.get(RECORDS, {}).get((line.namespace, line.name))
        is_another = known is not None and Names(place, RECORDS).identity(known).uid != line.uid
        self.put(RECORDS, line.record_document(f".{line.uid}" if is_another else ""), place)

    def _keep(self, document: bytes, kind: str, group: str, place: str) -> None:
        if (group, kind) == ("plimsoll.dev", "AuditedEviction"):
            self._keep_audited(document, place)
            return
        if group == _METRICS and kind in self._readings:
            self._readings[kind].append(_reading(document, place))
            return
        plural = _PLURALS.get((group, kind))
        if plural is not None:
            self.put(plural, document, place)
            return
        declared = [
            each
            for each in declared_here()
            if (each.kind.group(), each.kind.kind or each.kind.__name__) == (group, kind)
        ]
        if not declared:
            self.ignored[kind] += 1
        for resource in declared:
            if resource.kind.includes(msgspec.json.decode(document, type=ApiObject)):
                self.put(resource.name, document, place)

    def put(self, plural: str, document: bytes, place: str) -> None:
        """Add one object.

        Raises:
            SnapshotError: Another object has the same name.
        """
        identity = Names(place, plural).identity(document)
        if not identity.uid or not (identity.namespace or plural in _CLUSTER_SCOPED or "." in plural):
            document, identity = _completed(document, identity, plural)
        stock = self._objects.setdefault(plural, {})
        earlier = stock.get((identity.namespace, identity.name))
        if earlier is not None and Names(place, plural).identity(earlier).uid != identity.uid:
            raise SnapshotError(
                place,
                f"{identity} of {plural} is there twice, with different uids;"
                " the files are of different clusters or times",
            )
        stock[identity.namespace, identity.name] = document


def _completed(document: bytes, identity: Identity, plural: str) -> tuple[bytes, Identity]:
    """A manifest as the API server would have stored it: with a uid, and with a namespace."""
    is_scoped = plural in _CLUSTER_SCOPED or "." in plural
    namespace = identity.namespace or ("" if is_scoped else "default")
    whole = Identity(namespace, identity.name, identity.uid or f"{plural}/{namespace}/{identity.name}")
    found = msgspec.json.decode(document)
    found["metadata"] |= {"uid": whole.uid} | ({"namespace": namespace} if namespace else {})
    return msgspec.json.encode(found), whole


def yaml_documents(text: bytes, place: str) -> Iterator[Any]:
    """Parse untrusted YAML: bounded depth, no aliases, plain values.

    Raises:
        SnapshotError: It is malformed, or exceeds the bounds.
    """
    depth = 0
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > _DEEPEST:
                    raise SnapshotError(place, f"it is nested more than {_DEEPEST} levels deep")
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            elif isinstance(event, yaml.AliasEvent):
                name = str(event.anchor)[:_SHOWN]
                raise SnapshotError(place, f"it has an alias (*{name}); write the value itself")
        yield from yaml.load_all(text, Loader=yaml.CSafeLoader)
    except yaml.MarkedYAMLError as exc:
        where = "" if exc.problem_mark is None else f" in line {exc.problem_mark.line + 1}"
        problem = str(exc.problem)[:_SHOWN]
        raise SnapshotError(place, f"it is neither JSON nor YAML{where}: {problem}") from exc
    except (yaml.YAMLError, UnicodeDecodeError, ValueError) as exc:
        first = str(exc).splitlines()[0]
        raise SnapshotError(place, f"it is neither JSON nor YAML: {first}") from exc


def _lines_of(text: bytes, problem: Exception, place: str) -> list[msgspec.Raw]:
    """JSON lines, or the parser's error about the text as a single value."""
    try:
        return msgspec.json.Decoder(msgspec.Raw).decode_lines(text)
    except (msgspec.DecodeError, RecursionError):
        pass
    if isinstance(problem, RecursionError):
        raise SnapshotError(place, "it is nested too deeply") from problem
    raise SnapshotError(place, f"it is not JSON, or truncated: {problem}") from problem


def _reading(document: bytes, place: str) -> UsageReading:
    """The metrics API's reading of a node or pod."""
    try:
        item: Mapping[str, Any] = msgspec.json.decode(document)
        meta = item["metadata"]
        parts = item.get("containers", [item])
        usage = {name: sum(nanos(part["usage"][name]) for part in parts) for name in ("cpu", "memory")}
        name = f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else meta["name"]
        return UsageReading(name, usage, datetime.fromisoformat(item["timestamp"]).timestamp())
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as exc:
        raise SnapshotError(
            place, f"a reading of usage is not as the metrics API serves it: {exc!r:.200}"
        ) from exc
