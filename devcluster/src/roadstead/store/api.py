"""Reads and writes objects; HTTP and the controllers in this process both go through ``Api``.

A write consists of admission, defaults, checks and commit. It is synchronous, so no other write comes in
between; one that needs the answer of a webhook is run again with it (``progress``). Returned objects are
shared: callers copy them before a change (``copies.copied``).

Longer than most modules, because the order of the steps of a write is read in one place.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import random
import secrets
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from roadstead.kinds.checks.metadata import metadata_causes, metadata_update_causes
from roadstead.kinds.kind import Kind, Objects
from roadstead.schemas.timestamps import timestamp_of
from roadstead.store import patches
from roadstead.store.admission import CONTROLLERS, Admission, Attempt
from roadstead.store.deletion import DeleteOptions, deletion, ends_with_update
from roadstead.store.managed_fields import Manager, Managers, created, updated
from roadstead.store.progress import Progress, Question, Unanswered
from roadstead.store.store import Change, Entry, EventType, Key, Store
from roadstead.values.copies import copied
from roadstead.values.resources import Obj, Registry, Resource, built_in_registry
from roadstead.values.selectors import FieldTerm, matches_labels, parse_fields, parse_labels
from roadstead.values.status_errors import (
    MODIFIED,
    OTHER_NAMESPACE,
    Cause,
    StatusError,
    already_exists,
    bad_request,
    conflict,
    forbidden,
    invalid,
    not_found,
)

__all__ = ["Api", "DeleteOptions", "StatusError", "Write"]

Entries = list[Entry]
Objs = list[Obj]
Handler = Callable[[EventType, Obj, Obj | None], None]
Converter = Callable[[Obj, str], Obj]

#: Characters that the API server appends to ``generateName``: no vowels, none that look alike.
_SUFFIX_SIGNS = "bcdfghjklmnpqrstvwxz2456789"


#: Metadata that a client cannot set at creation.
_SERVERS_OWN = (
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "resourceVersion",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """The writer and the options of a write.

    Attributes:
        dry_run: respond without a change.
        manager: the field manager.
        subresource: "" for the main resource, else "status" and so on.
        managers: the managers of the fields after the write, if server-side apply has computed them.
        user: the sender, as in ``userInfo``.
        warnings: those of admission are added here.
        options: CreateOptions and so on, as webhooks see them.
        judged: whether admission judges it; it has judged a Scale before its object is written.
    """

    dry_run: bool = False
    manager: str = "roadstead"
    subresource: str = ""
    managers: Managers | None = None
    user: Obj = field(default_factory=lambda: CONTROLLERS)
    warnings: list[str] = field(default_factory=list)
    options: Obj = field(default_factory=dict)
    judged: bool = True


_PLAIN = Write()
#: The field selector "=": selects everything.
_NOTHING = FieldTerm("", equal=True, value="")


class Virtual(Protocol):
    """A resource whose objects are computed for each request."""

    def list(self, namespace: str | None) -> list[Obj]:
        """The objects of a namespace, or of all."""
        ...


class Limits(Protocol):
    """Completes and rejects objects of any kind by other objects."""

    def default(self, resource: Resource, obj: Obj, objects: Objects) -> None:
        """Complete a new object, before it is checked."""
        ...

    def review(
        self, resource: Resource, new: Obj, old: Obj | None, objects: Objects, *, dry_run: bool = False
    ) -> None:
        """Check a valid object before it is stored.

        Raises:
            StatusError: 403.
        """
        ...


def _node_of(pod: Obj) -> list[str]:
    """The index of pods by node; unbound ones are under the empty name."""
    return [(pod.get("spec") or {}).get("nodeName", "")]


class Api:
    """Reads and writes of all resources.

    Args:
        kinds: the behaviour of kinds, by the resource's key; objects of other resources are stored unchanged.
        registry: the served resources; default: the built-in ones.
        converters: how stored objects become those of another version, by collection; the default changes
            ``apiVersion``.
        clock: the time, with zone.
        randomness: the source of uids and generated names; None is unseeded.
    """

    def __init__(
        self,
        kinds: Mapping[str, Kind],
        *,
        registry: Registry | None = None,
        converters: Mapping[str, Converter] | None = None,
        clock: Callable[[], dt.datetime],
        randomness: random.Random | None = None,
    ) -> None:
        self.registry = registry if registry is not None else built_in_registry()
        self.kinds: dict[str, Kind] = dict(kinds)
        self.store = Store()
        self.clock = clock
        self._randomness = randomness or random.Random(secrets.randbits(128))  # noqa: S311 - names, not secrets
        #: How stored objects become those of another version, by collection.
        self.converters: dict[str, Converter] = dict(converters or {})
        #: Resources whose objects are computed for each request, by key (metrics.k8s.io).
        self.virtual: dict[str, Virtual] = {}
        #: Changes and rejects writes as users have configured; None: no write.
        self.admission: Admission | None = None
        #: Why a user may do what is asked, None where it may not; without it, every user may do everything.
        self.authorize: Callable[..., str | None] | None = None
        #: That of the request that runs now; None: webhooks are not asked (``trying``).
        self.progress: Progress | None = None
        #: Defaults and bounds that objects of a namespace set for others, in order.
        self.limits: list[Limits] = []
        self._plain_kind = Kind()
        self._rendered_moment: dt.datetime | None = None
        self._rendered_now = ""
        self.store.collection("pods").add_index("spec.nodeName", _node_of)

    # -- resources -------------------------------------------------------------------------------------------

    def resource(self, resource: str | Resource) -> Resource:
        """The resource of a key.

        Raises:
            StatusError: 404, if no resource has this key.
        """
        if isinstance(resource, Resource):
            return resource
        found = self.registry.keyed(resource)
        if found is None:
            raise StatusError(404, "NotFound", "the server could not find the requested resource")
        return found

    def kind(self, resource: Resource) -> Kind:
        """The behaviour of a resource's kind."""
        return self.kinds.get(resource.key, self._plain_kind)

    @contextmanager
    def trying(self, progress: Progress | None) -> Iterator[None]:
        """Let requests in a ``with`` block ask webhooks: they raise ``Unanswered``, to be run again.

        Args:
            progress: what earlier runs have learnt; None lets them ask no webhook.
        """
        before, self.progress = self.progress, progress
        try:
            yield
        finally:
            self.progress = before

    def _once(self, name: str, draw: Callable[[], Any]) -> Any:
        """A value that all runs of a write share."""
        return draw() if self.progress is None else self.progress.once(name, draw)

    def now(self) -> str:
        """The time in the form of metadata; one for all runs of a write."""
        moment: dt.datetime = self._once("now", lambda: self.clock().replace(microsecond=0))
        if moment != self._rendered_moment:
            self._rendered_moment, self._rendered_now = moment, timestamp_of(moment)
        return self._rendered_now

    # -- reading ---------------------------------------------------------------------------------------------

    def get(self, resource: str | Resource, namespace: str | None, name: str) -> Obj:
        """An object.

        Raises:
            StatusError: 404.
        """
        return self.entry(self.resource(resource), namespace, name).obj

    def find(self, resource: str | Resource, namespace: str | None, name: str) -> Obj | None:
        """An object, or None."""
        of = self.resource(resource)
        entry = self.store.collection(of.collection).entries.get((namespace or "", name))
        return None if entry is None else self.served(of, entry).obj

    def entry(self, resource: Resource, namespace: str | None, name: str) -> Entry:
        """An object with its bytes, in the version of the resource.

        Raises:
            StatusError: 404.
        """
        entry = self.store.collection(resource.collection).entries.get((namespace or "", name))
        if entry is None:
            raise not_found(resource, name)
        if not self.asks(resource):
            return self.served(resource, entry)
        # As kube-apiserver, which reads a single object from etcd, and lists from its cache.
        obj = self._read(resource, entry)
        return entry if obj is entry.obj else Entry(obj, entry.revision, entry.managers)

    def asks(self, resource: Resource) -> bool:
        """Whether a webhook converts the objects of a resource."""
        converter = self.converters.get(resource.collection)
        return getattr(converter, "asks", False)

    def served(self, resource: Resource, entry: Entry) -> Entry:
        """A stored entry in the version of the resource; the entry caches conversions.

        Raises:
            StatusError: 500, if a webhook cannot convert it.
            Unanswered: a webhook is to convert it.
        """
        wanted = resource.api_version
        if entry.obj["apiVersion"] == wanted:
            return entry
        if entry.converted is None:
            entry.converted = {}
        found = entry.converted.get(wanted)
        if found is None:
            obj = self._read(resource, entry)
            if obj is entry.obj:
                return entry
            found = entry.converted[wanted] = Entry(obj, entry.revision, entry.managers)
        return found

    def _read(self, resource: Resource, entry: Entry) -> Obj:
        """A stored object in the version of the resource, without what that version does not have."""
        obj = self.converted(resource, entry.obj, resource.api_version)
        if obj is not entry.obj:
            self.kind(resource).coerce(obj)
        return obj

    def all_served(self, resource: Resource, entries: Entries) -> Entries:
        """As ``served``, for many; webhooks are asked about all at a time.

        Raises:
            As ``served``.
        """
        found: Entries = []
        questions: list[Question] = []
        for entry in entries:
            try:
                found.append(self.served(resource, entry))
            except Unanswered as unanswered:
                questions += unanswered.questions
        if questions:
            raise Unanswered(questions)
        return found

    def converted(self, resource: Resource, obj: Obj, api_version: str) -> Obj:
        """An object of a resource in another version; itself, if a webhook converts and may not be asked now.

        Raises:
            As ``served``.
        """
        if obj.get("apiVersion") == api_version:
            return obj
        converter = self.converters.get(resource.collection)
        return converter(obj, api_version) if converter else {**obj, "apiVersion": api_version}

    def list(
        self, resource: str | Resource, namespace: str | None = None, *, labels: str = "", fields: str = ""
    ) -> Objs:
        """Objects in the order of their keys; ``namespace=None`` means all.

        Raises:
            StatusError: 400, if a selector is malformed.
        """
        of = self.resource(resource)
        found = self.selected(of, self.candidates(of, namespace, fields), self.matcher(of, labels, fields))
        return [entry.obj for entry in self.all_served(of, found)]

    def selected(self, resource: Resource, entries: Entries, chosen: Callable[[Obj], bool] | None) -> Entries:
        """The entries that a selector chooses; by their converted form, where a webhook converts them."""
        if chosen is None:
            return entries
        shown = self.all_served(resource, entries) if self.asks(resource) else entries
        return [entry for entry, one in zip(entries, shown, strict=True) if chosen(one.obj)]

    def candidates(
        self, resource: Resource, namespace: str | None, fields: str = "", after: Key | None = None
    ) -> Entries:
        """Entries that a list filters, in order; an index narrows them if possible."""
        collection = self.store.collection(resource.collection)
        terms = parse_fields(fields) if fields else ()
        for term in terms:
            if term.equal and term.field == "metadata.name" and namespace is not None:
                entry = collection.entries.get((namespace, term.value))
                return [entry] if entry and (after is None or (namespace, term.value) > after) else []
            if term.equal and collection.has_index(term.field):
                return [
                    entry
                    for entry in collection.indexed(term.field, term.value)
                    if (namespace is None or entry.obj["metadata"].get("namespace") == namespace)
                    and (after is None or key_of(entry.obj) > after)
                ]
        if namespace is None and after is None:
            return [collection.entries[key] for key in collection.ordered()]
        return [collection.entries[key] for key in collection.ordered(namespace, after)]

    def matcher(self, resource: Resource, labels: str, fields: str) -> Callable[[Obj], bool] | None:
        """A predicate for stored objects made of both selectors; None if they select everything.

        Raises:
            StatusError: 400, if a selector is malformed or names a field that the kind does not offer.
        """
        requirements = parse_labels(labels) if labels else ()
        terms = parse_fields(fields) if fields else ()
        kind = self.kind(resource)
        for term in terms:
            if (
                term != _NOTHING
                and term.field not in ("metadata.name", "metadata.namespace")
                and term.field not in kind.field_labels()
            ):
                raise bad_request(f"field label not supported: {term.field}")
            if term.field == "metadata.namespace" and not (resource.namespaced or resource.group):
                raise bad_request(f"field label not supported: {term.field}")
        if not requirements and not terms:
            return None
        only_meta = all(term.field.startswith("metadata.") for term in terms)

        def chosen(obj: Obj) -> bool:
            meta = obj["metadata"]
            if requirements and not matches_labels(requirements, meta.get("labels") or {}):
                return False
            if not terms:
                return True
            values = {} if only_meta else kind.fields(obj)
            return _matches_fields(
                terms,
                {**values, "metadata.name": meta["name"], "metadata.namespace": meta.get("namespace", "")},
            )

        return chosen

    def subscribe(self, resource: str | Resource, handler: Handler) -> None:
        """Call a handler after each commit with (type, new, old).

        Calls follow the order of the commits, also when a handler itself writes. A handler must be quick and
        queues longer work.
        """

        def notify(change: Change) -> None:
            previous = change.previous
            handler(change.type, change.entry.obj, None if previous is None else previous.obj)

        self.store.collection(self.resource(resource).collection).subscribers.append(notify)

    # -- creating --------------------------------------------------------------------------------------------

    def create(self, resource: str | Resource, obj: Obj, how: Write = _PLAIN) -> Obj:
        """Create an object; a copy of ``obj`` is stored.

        Raises:
            StatusError: 409 if it exists, 403 and 422 if it is rejected.
        """
        of = self.resource(resource)
        return self.create_owned(of, copied(obj), how).obj

    def create_owned(self, resource: Resource, obj: Obj, how: Write) -> Entry:
        """As ``create``, of an object that the caller does not use afterwards."""
        kind = self.kind(resource)
        obj["apiVersion"], obj["kind"] = resource.api_version, resource.kind
        meta: Obj = obj.setdefault("metadata", {})
        self._admit_namespace(resource, meta, creating=True)
        if self.admission is not None:
            kind.default(obj)
            obj = self._mutated(resource, obj, None, how)
            meta = obj["metadata"]
        if not meta.get("name") and meta.get("generateName"):
            meta["name"] = self._generated(meta["generateName"])
        for name in _SERVERS_OWN:
            meta.pop(name, None)
        meta["uid"] = self._once(
            "uid", lambda: str(uuid.UUID(int=self._randomness.getrandbits(128), version=4))
        )
        meta["creationTimestamp"] = self.now()
        kind.default(obj)
        kind.prepare_create(obj)
        kind.note_sender(obj, how.user)
        if kind.counts_generation:
            meta["generation"] = 1
        elif not meta.get("generation"):
            meta.pop("generation", None)
        kind.admit_create(obj, self)
        for one in self.limits:
            one.default(resource, obj, self)
        causes = metadata_causes(obj, namespaced=resource.namespaced, name_faults=kind.name_faults)
        causes += kind.finalizer_causes(obj)
        causes += kind.validate_create(obj)
        if causes:
            raise invalid(resource, meta.get("name", ""), causes)
        self._validate("CREATE", resource, obj, None, how)
        for one in self.limits:
            one.review(resource, obj, None, self, dry_run=how.dry_run)
        key: Key = (meta.get("namespace", ""), meta["name"])
        existing = self.store.collection(resource.collection).entries.get(key)
        if existing is not None:
            raise already_exists(
                resource, meta["name"], ending="deletionTimestamp" in existing.obj["metadata"]
            )
        managers = how.managers
        if managers is None:
            has_status = resource.subresource("status") is not None
            managers = created(obj, kind.schema(resource), self.manager(resource, how), has_status=has_status)
        return self._written(resource, "ADDED", key, obj, managers, dry_run=how.dry_run)

    def _attempt(
        self, operation: str, resource: Resource, obj: Obj | None, old: Obj | None, how: Write
    ) -> Attempt:
        meta = (obj or old or {}).get("metadata") or {}
        options = how.options
        if options.get("kind") == "PatchOptions":  # as upstream, which never tells that it was a patch
            kind = "CreateOptions" if operation == "CREATE" else "UpdateOptions"
            options = {key: value for key, value in options.items() if key != "force"} | {"kind": kind}
        return Attempt(
            operation,
            resource,
            meta.get("name") or "",
            meta.get("namespace") or "",
            obj,
            old,
            how.subresource,
            how.dry_run,
            how.user,
            options,
            [] if how is _PLAIN else how.warnings,  # that one is shared by all writes of controllers
            self.progress,
        )

    def admitted(
        self, resource: Resource, key: Key, obj: Obj, how: Write, *, subresource: str, old: Obj | None = None
    ) -> Obj:
        """The body of a write of a subresource that is an object of its own, after admission.

        Args:
            resource: such as pods.
            key: namespace and name of the object.
            obj: the body, such as a Binding.
            how: options of the write.
            subresource: such as "binding".
            old: what the body replaces, None for a creation.

        Raises:
            StatusError: it is rejected.
        """
        if self.admission is None:
            return obj
        how = dataclasses.replace(how, subresource=subresource)
        operation = "CREATE" if old is None else "UPDATE"
        attempt = self._attempt(operation, resource, obj, old, how)
        attempt = dataclasses.replace(attempt, namespace=key[0], name=key[1])
        group, version, kind = attempt.kind
        obj = {**obj, "apiVersion": f"{group}/{version}".lstrip("/"), "kind": kind}
        attempt = dataclasses.replace(attempt, obj=obj)
        changed = self.admission.mutated(attempt)
        if changed is not None:
            attempt = dataclasses.replace(attempt, obj=changed)
        self.admission.validated(attempt)
        return obj if changed is None else changed

    def _mutated(self, resource: Resource, obj: Obj, old: Obj | None, how: Write) -> Obj:
        """The object as mutating admission changes it."""
        assert self.admission is not None
        operation = "CREATE" if old is None else "UPDATE"
        changed = self.admission.mutated(self._attempt(operation, resource, obj, old, how))
        if changed is None:
            return obj
        meta, namespace = changed.setdefault("metadata", {}), obj["metadata"].get("namespace")
        if resource.namespaced and meta.setdefault("namespace", namespace) != namespace:
            raise bad_request(OTHER_NAMESPACE)
        return changed

    def connected(
        self, resource: Resource, key: Key, subresource: str, options: Obj, kind: str, how: Write
    ) -> Obj:
        """The options of a connection after admission.

        Args:
            resource: such as pods.
            key: namespace and name of the object.
            subresource: such as "exec".
            options: such as PodExecOptions.
            kind: theirs, of the core group.
            how: the sender.

        Raises:
            StatusError: it is rejected.
        """
        options = {"kind": kind, "apiVersion": "v1", **options}
        if self.admission is None:
            return options
        attempt = self._attempt("CONNECT", resource, options, None, how)
        attempt = dataclasses.replace(
            attempt, namespace=key[0], name=key[1], subresource=subresource, object_kind=("", "v1", kind)
        )
        changed = self.admission.mutated(attempt)
        if changed is not None:
            attempt = dataclasses.replace(attempt, obj=changed)
        self.admission.validated(attempt)
        return options if changed is None else changed

    def _validate(
        self, operation: str, resource: Resource, obj: Obj | None, old: Obj | None, how: Write
    ) -> None:
        """Let admission judge a write.

        Raises:
            StatusError: it is rejected.
        """
        if self.admission is not None and how.judged:
            self.admission.validated(self._attempt(operation, resource, obj, old, how))

    def manager(self, resource: Resource, how: Write, operation: str = "Update") -> Manager:
        """The writer as an entry of managedFields without fields."""
        return Manager(how.manager, operation, resource.api_version, self.now(), how.subresource, {})

    def _generated(self, prefix: str) -> str:
        suffix: str = self._once("suffix", lambda: "".join(self._randomness.choices(_SUFFIX_SIGNS, k=5)))
        return prefix[:58] + suffix

    def _admit_namespace(self, resource: Resource, meta: Obj, *, creating: bool) -> None:
        if not resource.namespaced:
            return
        name = meta.get("namespace") or ""
        if not name:
            raise bad_request("an empty namespace may not be set during creation")
        namespaces = self.resource("namespaces")
        found = self.store.collection("namespaces").entries.get(("", name))
        if found is None:
            raise not_found(namespaces, name)
        if creating and found.obj["metadata"].get("deletionTimestamp"):
            why = f"unable to create new content in namespace {name} because it is being terminated"
            cause = {
                "reason": "NamespaceTerminating",
                "message": f"namespace {name} is being terminated",
                "field": "metadata.namespace",
            }
            raise forbidden(resource, meta.get("name", ""), why, causes=[cause])

    # -- changing --------------------------------------------------------------------------------------------

    def update(self, resource: str | Resource, obj: Obj, how: Write = _PLAIN) -> Obj:
        """Replace an object by a copy of ``obj``.

        Raises:
            StatusError: 404; 409 if ``obj`` has a stale resourceVersion; 422 if it is rejected.
        """
        return self.update_owned(self.resource(resource), copied(obj), how).obj

    def update_status(self, resource: str | Resource, obj: Obj, how: Write = _PLAIN) -> Obj:
        """Replace the status of an object, as ``update``."""
        return self.update(
            resource, obj, Write(dry_run=how.dry_run, manager=how.manager, subresource="status")
        )

    def update_owned(self, resource: Resource, obj: Obj, how: Write) -> Entry:
        """As ``update``, of an object that the caller does not use afterwards; returns the new entry."""
        kind = self.kind(resource)
        meta = obj.setdefault("metadata", {})
        name = meta.get("name", "")
        key = (meta.get("namespace") or "", name)
        entry = self.store.collection(resource.collection).entries.get(key)
        if entry is None:
            raise not_found(resource, name)
        old = self.served(resource, entry).obj
        given = _preconditions(meta)
        _check_uid(resource, given, old)
        self._carry_over(obj, old)
        kind.default(obj)
        if self.admission is not None and how.judged:
            obj = self._mutated(resource, obj, old, how)
            meta = obj["metadata"]
        _check_version(resource, given, old, kind)
        if how.subresource == "status":
            kind.prepare_status(obj, old)
        elif how.subresource:
            kind.prepare_part(obj, old, how.subresource)
            meta = obj["metadata"]
        else:
            kind.prepare_update(obj, old)
        if kind.counts_generation and how.subresource != "status" and kind.spec_changed(obj, old):
            meta["generation"] = old["metadata"].get("generation", 0) + 1
        if not how.subresource:
            kind.admit_update(obj, old, self)
        causes = metadata_update_causes(obj, old) + kind.finalizer_causes(obj)
        if how.subresource == "status":
            causes += kind.validate_status(obj, old)
        elif how.subresource:
            causes += kind.validate_part(obj, old, how.subresource)
        else:
            causes += kind.validate_update(obj, old)
        if causes:
            raise invalid(resource, name, causes)
        self._validate("UPDATE", resource, obj, old, how)
        if how.subresource != "status":
            for one in self.limits:
                one.review(resource, obj, old, self, dry_run=how.dry_run)
        if how.managers is None:
            who = self.manager(resource, how)
            how = dataclasses.replace(
                how, managers=updated(entry.managers, old, obj, kind.schema(resource), who)
            )
        return self.replace(resource, key, obj, entry, how)

    def replace(self, resource: Resource, key: Key, obj: Obj, entry: Entry, how: Write) -> Entry:
        """Commit a valid update; an update that changes nothing writes nothing.

        Args:
            resource: in the version of ``obj``.
            key: the key of the object.
            obj: the new state; the store owns it afterwards.
            entry: the current state, as stored.
            how: options; its ``managers`` are those of the new state, None keeps them.
        """
        old = self.served(resource, entry).obj
        managers = entry.managers if how.managers is None else how.managers
        obj["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
        removed = ends_with_update(obj, old) and self.kind(resource).may_end(obj)
        if obj == old and not removed and managers == entry.managers and self._is_current(resource, entry):
            return self.served(resource, entry)
        if removed and not how.dry_run:
            # As upstream, the event has the last stored state, and the response the requested one.
            self._drop(resource, key, entry)
            return Entry(obj, entry.revision, managers)
        return self._written(resource, "MODIFIED", key, obj, managers, dry_run=how.dry_run)

    def _is_current(self, resource: Resource, entry: Entry) -> bool:
        """Whether an object is in the version in which it would be stored now."""
        unconverted = self.progress is None and self.asks(resource)
        return unconverted or entry.obj["apiVersion"] == resource.stored_api_version

    def _written(
        self, resource: Resource, kind: EventType, key: Key, obj: Obj, managers: Managers, *, dry_run: bool
    ) -> Entry:
        """Commit an object in the version that is stored; the entry is in that of the resource.

        It is converted back before the commit, after which nothing may be asked.
        """
        fault: StatusError | None = None
        stored = shown = self.converted(resource, obj, resource.stored_api_version)
        if stored is not obj and resource.custom:  # as it is decoded later
            self.kind(resource).default(stored)
        try:
            shown = self._read(resource, Entry(stored, 0))
        except StatusError as error:
            fault = error  # as upstream: it is stored all the same
        revision = 0
        if not dry_run:
            entry = self.commit(resource.collection, kind, key, stored, managers)
            revision = entry.revision
        if fault is not None:
            raise fault
        if shown is stored and not dry_run:
            return entry
        if revision:
            shown = {**shown, "metadata": {**shown["metadata"], "resourceVersion": str(revision)}}
        return Entry(shown, revision, managers)

    def _drop(self, resource: Resource, key: Key, entry: Entry) -> Entry:
        """Commit the deletion of an object in its last state."""
        last = {**entry.obj, "metadata": dict(entry.obj["metadata"])}
        return self.commit(resource.collection, "DELETED", key, last, entry.managers)

    def commit(self, name: str, kind: EventType, key: Key, obj: Obj, managers: Managers = ()) -> Entry:
        """As ``Store.commit``; what earlier runs of the write have learnt is used up."""
        if self.progress is not None:
            self.progress.committed()
        with self.trying(None):  # subscribers write for themselves
            return self.store.commit(name, kind, key, obj, managers)

    @staticmethod
    def _carry_over(obj: Obj, old: Obj) -> None:
        """Copy metadata that an update need not repeat and cannot change."""
        meta, before = obj["metadata"], old["metadata"]
        obj["apiVersion"], obj["kind"] = old["apiVersion"], old["kind"]
        meta["uid"], meta["creationTimestamp"] = before["uid"], before["creationTimestamp"]
        meta.pop("generation", None)
        for name in ("generation", "deletionTimestamp"):
            if name in before:
                meta[name] = before[name]
        if "deletionGracePeriodSeconds" in before:
            meta.setdefault("deletionGracePeriodSeconds", before["deletionGracePeriodSeconds"])
        meta.pop("selfLink", None)
        if not meta.get("generateName") and before.get("generateName"):
            meta["generateName"] = before["generateName"]

    def patch(
        self, resource: str | Resource, namespace: str | None, name: str, patch: Obj, *, subresource: str = ""
    ) -> Obj:
        """Apply a JSON merge patch (RFC 7386).

        Raises:
            StatusError: 404; 409; 422.
        """
        of = self.resource(resource)
        old = self.entry(of, namespace, name).obj
        return self.update_owned(of, patches.merge(copied(old), patch), Write(subresource=subresource)).obj

    # -- deleting --------------------------------------------------------------------------------------------

    def delete(
        self,
        resource: str | Resource,
        namespace: str | None,
        name: str,
        *,
        grace_seconds: int | None = None,
        propagation: str | None = None,
        uid: str | None = None,
    ) -> Obj:
        """Delete an object, or mark it as being deleted; returns its last state.

        Raises:
            StatusError: 404; 409 if the uid differs.
        """
        options = DeleteOptions(grace_seconds, propagation or "", uid or "")
        return self.remove(self.resource(resource), namespace, name, options)[0].obj

    def remove(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        options: DeleteOptions,
        *,
        judged: bool = True,
        of_many: bool = False,
    ) -> tuple[Entry, bool]:
        """Delete as ``delete`` does; also returns whether the object no longer exists.

        Args:
            resource: the resource.
            namespace: that of the object.
            name: that of the object.
            options: options of the deletion.
            judged: whether admission judges it; it has judged an eviction already.
            of_many: whether a collection is deleted; admission is not told names.
        """
        entry = self.entry(resource, namespace, name)
        meta = entry.obj["metadata"]
        if options.uid and options.uid != meta["uid"]:
            why = (
                f"the UID in the precondition ({options.uid}) does not match the UID in record "
                f"({meta['uid']}). The object might have been deleted and then recreated"
            )
            raise _precondition(resource, name, why)
        if options.resource_version and options.resource_version != meta["resourceVersion"]:
            why = (
                f"the ResourceVersion in the precondition ({options.resource_version}) does not match the "
                f"ResourceVersion in record ({meta['resourceVersion']}). The object might have been modified"
            )
            raise _precondition(resource, name, why)
        if self.admission is not None and judged:
            sender = Write(
                user=options.user, dry_run=options.dry_run, warnings=options.warnings, options=options.sent
            )
            attempt = self._attempt("DELETE", resource, None, entry.obj, sender)
            attempt = dataclasses.replace(attempt, name="") if of_many else attempt
            self.admission.mutated(attempt)
            self.admission.validated(attempt)
        key = (namespace or "", name)
        kind = self.kind(resource)
        stored = self.store.collection(resource.collection).entries[key]
        special = kind.begin_deletion(entry.obj, self.clock())
        how = Write(dry_run=options.dry_run)
        if special is not None:
            return self.replace(resource, key, special, stored, how), False
        if not options.propagation and kind.default_propagation:
            options = dataclasses.replace(options, propagation=kind.default_propagation)
        step = deletion(entry.obj, kind, options, self.clock())
        if step.marked is not None and step.marked != entry.obj:
            entry = self._written(
                resource, "MODIFIED", key, step.marked, stored.managers, dry_run=options.dry_run
            )
        if not step.removed or options.dry_run:
            return entry, step.removed
        if (now := self.store.collection(resource.collection).entries.get(key)) is None:
            return entry, True
        gone = self._drop(resource, key, now)
        if gone.obj["apiVersion"] == entry.obj["apiVersion"]:
            return gone, True
        last = {**entry.obj, "metadata": {**entry.obj["metadata"], "resourceVersion": str(gone.revision)}}
        return Entry(last, gone.revision, gone.managers), True


def _preconditions(meta: Obj) -> tuple[str, str]:
    """The uid and the resourceVersion that an update expects; "" for any."""
    version = meta.get("resourceVersion") or ""
    return meta.get("uid") or "", "" if version == "0" else version


def _check_uid(resource: Resource, given: tuple[str, str], old: Obj) -> None:
    """Compare the uid of an update with that of the object.

    Raises:
        StatusError: 409; 500, if its version is no number.
    """
    expected, version = given
    name, uid = old["metadata"]["name"], old["metadata"]["uid"]
    if expected and expected != uid:
        why = f"Precondition failed: UID in precondition: {expected}, UID in object meta: {uid}"
        raise conflict(resource, name, why)
    if version and not version.isdigit():
        raise StatusError(500, "", f'strconv.ParseUint: parsing "{version}": invalid syntax')


def _check_version(resource: Resource, given: tuple[str, str], old: Obj, kind: Kind) -> None:
    """Compare the version of an update with that of the object, after mutating admission.

    Raises:
        StatusError: 409; 422, if the kind requires a version and the update has none.
    """
    name, version = old["metadata"]["name"], given[1]
    if version and version != old["metadata"]["resourceVersion"]:
        raise conflict(resource, name, MODIFIED)
    if not version and not kind.unconditional_update:
        message = "Invalid value: 0: must be specified for an update"
        # Upstream names the resource here, not the kind.
        named = dataclasses.replace(resource, kind=resource.plural)
        raise invalid(named, name, [Cause("metadata.resourceVersion", message)])


def _precondition(resource: Resource, name: str, why: str) -> StatusError:
    """A conflict as the store reports it, with the kind in place of the resource."""
    refused = conflict(dataclasses.replace(resource, plural=resource.kind), name, why)
    refused.details["kind"] = resource.kind
    return refused


def key_of(obj: Obj) -> Key:
    """The namespace ("" for a cluster-scoped object) and name."""
    return (obj["metadata"].get("namespace", ""), obj["metadata"]["name"])


def _matches_fields(terms: tuple[FieldTerm, ...], values: dict[str, Any]) -> bool:
    return all((values.get(term.field, "") == term.value) is term.equal for term in terms)
