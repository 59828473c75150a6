"""Serves the resources of CustomResourceDefinitions, from acceptance to deletion.

A definition without conflicting names is established immediately and its resources are served. Deleting a
definition first deletes its resources; a finalizer keeps it until they are deleted, and none is created
meanwhile. Watches of the resources end with the definition.

Source: apiextensions-apiserver v1.36 ``pkg/controller/{status,establish,finalizer}``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from roadstead.definitions.checks import definition_causes, definition_update_causes
from roadstead.definitions.conversion import Conversion
from roadstead.definitions.custom_kind import CustomKind
from roadstead.kinds.kind import StatusKind
from roadstead.store.store import Change, Entry
from roadstead.values.copies import copied
from roadstead.values.resources import ALL_VERBS, SCALE, STATUS, Resource
from roadstead.values.status_errors import StatusError

if TYPE_CHECKING:
    from roadstead.store.api import Api
    from roadstead.store.store import EventType
    from roadstead.values.resources import Obj
    from roadstead.values.status_errors import Cause

CRDS = "customresourcedefinitions.apiextensions.k8s.io"
#: Keeps a deleted definition until its resources are deleted.
FINALIZER = "customresourcecleanup.apiextensions.k8s.io"


def key_of(definition: Obj) -> str:
    """The key of a definition's resources, as in "gadgets.example.com"."""
    return f"{definition['spec']['names']['plural']}.{definition['spec']['group']}"


def condition(definition: Obj, kind: str) -> Obj | None:
    """A condition of a definition's status."""
    conditions = (definition.get("status") or {}).get("conditions") or []
    return next((one for one in conditions if one["type"] == kind), None)


def is_true(definition: Obj, kind: str) -> bool:
    """Whether a condition holds."""
    found = condition(definition, kind)
    return found is not None and found["status"] == "True"


_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")


def version_rank(name: str) -> tuple[int, int, int, str]:
    """Sorts versions as discovery does: stable ones first, then beta, alpha and others; newest first."""
    found = _VERSION.fullmatch(name)
    if found is None:
        return (3, 0, 0, name)
    stage = {None: 0, "beta": 1, "alpha": 2}[found[2]]
    return (stage, -int(found[1]), -int(found[3] or 0), name)


def served_versions(definition: Obj) -> list[Obj]:
    """The versions that are served, the preferred one first."""
    versions = [version for version in definition["spec"]["versions"] if version.get("served")]
    return sorted(versions, key=lambda version: version_rank(version["name"]))


class DefinitionKind(StatusKind):
    """The kind of the definitions themselves."""

    qualified_finalizers = False

    def default(self, obj: Obj) -> None:
        """Names that derive from others, and no conversion."""
        spec = obj.get("spec")
        if not isinstance(spec, dict):
            return
        names = spec.setdefault("names", {})
        if names.get("kind"):
            if not names.get("singular"):
                names["singular"] = names["kind"].lower()
            if not names.get("listKind"):
                names["listKind"] = f"{names['kind']}List"
        webhook = spec.setdefault("conversion", {"strategy": "None"}).get("webhook") or {}
        if service := (webhook.get("clientConfig") or {}).get("service"):
            service.setdefault("port", 443)
        for version in spec.get("versions") or []:
            version.setdefault("served", False)
            version.setdefault("storage", False)

    def prepare_create(self, obj: Obj) -> None:
        """A new definition has one stored version and no accepted names."""
        versions = (obj.get("spec") or {}).get("versions") or []
        obj["status"] = {
            "conditions": [],
            "acceptedNames": {"plural": "", "kind": ""},
            "storedVersions": [version.get("name", "") for version in versions if version.get("storage")],
        }

    def prepare_update(self, new: Obj, old: Obj) -> None:
        """A new storage version is added to the stored versions."""
        super().prepare_update(new, old)
        stored = list((old.get("status") or {}).get("storedVersions") or [])
        for version in (new.get("spec") or {}).get("versions") or []:
            if version.get("storage") and version["name"] not in stored:
                new["status"] = {**new["status"], "storedVersions": [*stored, version["name"]]}

    def validate_create(self, obj: Obj) -> list[Cause]:
        """As in ``checks``."""
        return definition_causes(obj)

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """Likewise; an unchanged spec is not validated again."""
        if new.get("spec") == old.get("spec"):
            return []
        return definition_update_causes(new, old, established=is_true(old, "Established"))

    def deletion_finalizers(self, obj: Obj) -> tuple[str, ...]:
        """Resources are deleted first."""
        return (FINALIZER,) if is_true(obj, "Established") else ()


class Definitions:
    """Serves the resources of definitions, beginning with each commit.

    Args:
        api: the API with the definitions; their resources are added to it.
    """

    def __init__(self, api: Api) -> None:
        self._api = api
        self._watched: set[str] = set()
        api.kinds[CRDS] = DefinitionKind()
        api.subscribe(CRDS, self._changed)

    def _changed(self, kind: EventType, new: Obj, old: Obj | None) -> None:
        if kind == "DELETED":
            self._unserve(new)
            for other in self._api.list(CRDS):
                if other["spec"]["group"] == new["spec"]["group"]:
                    self._accept(other)
            return
        if new["metadata"].get("deletionTimestamp"):
            self._terminate(new)
        elif old is None or new["spec"] != old["spec"]:
            self._accept(new)

    # -- names ---------------------------------------------------------------------------------------------

    def _accept(self, definition: Obj) -> None:
        """Accept the requested names of a definition that no other definition has."""
        changed = copied(definition)
        status = changed["status"]
        accepted, fault = self._accepted_names(definition)
        status["acceptedNames"] = accepted
        state = fault or ("True", "NoConflicts", "no conflicts found")
        self._set_condition(changed, "NamesAccepted", *state)
        if not fault and not is_true(changed, "Established"):
            state = ("True", "InitialNamesAccepted", "the initial names have been accepted")
            self._set_condition(changed, "Established", *state)
        elif fault and condition(changed, "Established") is None:
            state = ("False", "NotAccepted", "not all names are accepted")
            self._set_condition(changed, "Established", *state)
        if status != definition["status"]:
            definition = self._api.update_status(CRDS, changed)
        if is_true(definition, "Established"):
            self._serve(definition)

    def _accepted_names(self, definition: Obj) -> tuple[Obj, tuple[str, str, str] | None]:
        wanted, had = definition["spec"]["names"], definition["status"]["acceptedNames"]
        resources, kinds = self._taken_names(definition)
        accepted, fault = {**had}, None
        for key, reason in (
            ("plural", "PluralConflict"),
            ("singular", "SingularConflict"),
            ("shortNames", "ShortNamesConflict"),
            ("kind", "KindConflict"),
            ("listKind", "ListKindConflict"),
        ):
            given = wanted.get(key)
            taken = kinds if key in ("kind", "listKind") else resources
            names = given if isinstance(given, list) else [given] if given else []
            clash = [name for name in names if name in taken]
            if clash and given != had.get(key):
                fault = ("False", reason, ", ".join(f'"{name}" is already in use' for name in clash))
            elif given:
                accepted[key] = given
            else:
                accepted.pop(key, None)
        if wanted.get("categories"):
            accepted["categories"] = wanted["categories"]
        else:
            accepted.pop("categories", None)
        return accepted, fault

    def _taken_names(self, definition: Obj) -> tuple[set[str], set[str]]:
        """The names of resources and of kinds that other definitions of the group have."""
        resources: set[str] = set()
        kinds: set[str] = set()
        for other in self._api.list(CRDS):
            same = other["metadata"]["name"] == definition["metadata"]["name"]
            if same or other["spec"]["group"] != definition["spec"]["group"]:
                continue
            names = (other.get("status") or {}).get("acceptedNames") or {}
            resources |= {
                names.get("plural", ""),
                names.get("singular", ""),
                *(names.get("shortNames") or ()),
            }
            kinds |= {names.get("kind", ""), names.get("listKind", "")}
        return resources - {""}, kinds - {""}

    def _set_condition(self, definition: Obj, kind: str, state: str, reason: str, message: str) -> None:
        conditions = definition["status"].setdefault("conditions", [])
        found = condition(definition, kind)
        if found is None:
            found = {"type": kind, "status": ""}
            conditions.append(found)
        if found["status"] != state:
            found["lastTransitionTime"] = self._api.now()
        found.update(status=state, reason=reason, message=message)

    # -- serving -------------------------------------------------------------------------------------------

    def _serve(self, definition: Obj) -> None:
        """Serve the resources of the current definition."""
        api, key = self._api, key_of(definition)
        api.registry.remove(key)
        api.kinds[key] = kind = CustomKind(definition)
        api.converters[key] = Conversion(api, definition)
        for position, resource in enumerate(resources_of(definition)):
            api.registry.add(resource, preferred=position == 0)
        self._renew(key, kind)
        if key not in self._watched:
            self._watched.add(key)
            api.store.collection(key).subscribers.append(self._instance_changed)

    def _renew(self, key: str, kind: CustomKind) -> None:
        """Prune and default stored objects by the current schema; their resourceVersions stay."""
        collection = self._api.store.collection(key)
        for name, entry in list(collection.entries.items()):
            obj = copied(entry.obj)
            kind.default(obj)
            if obj != entry.obj:
                collection.put(name, Entry(obj, entry.revision))
            else:
                entry.converted = None

    def _unserve(self, definition: Obj) -> None:
        key = key_of(definition)
        self._api.registry.remove(key)
        self._api.kinds.pop(key, None)
        self._api.converters.pop(key, None)
        self._api.store.forget(key)
        self._watched.discard(key)

    # -- the end -------------------------------------------------------------------------------------------

    def _terminate(self, definition: Obj) -> None:
        """Delete the resources of a definition, and then the definition."""
        api, key = self._api, key_of(definition)
        if not is_true(definition, "Terminating"):
            changed = copied(definition)
            state = ("True", "InstanceDeletionInProgress", "CustomResource deletion is in progress")
            self._set_condition(changed, "Terminating", *state)
            api.update_status(CRDS, changed)
            return  # this change calls the subscriber again
        kind = api.kinds.get(key)
        if isinstance(kind, CustomKind):
            kind.is_ending = True
        entries = list(api.store.collection(key).entries.values())
        for entry in entries:
            meta = entry.obj["metadata"]
            if not meta.get("deletionTimestamp"):
                api.delete(key, meta.get("namespace"), meta["name"])
        self._release(definition["metadata"]["name"], key)

    def _instance_changed(self, change: Change) -> None:
        if change.type != "DELETED":
            return
        obj = change.entry.obj
        group = obj["apiVersion"].partition("/")[0]
        for definition in self._api.list(CRDS):
            if definition["metadata"].get("deletionTimestamp") and definition["spec"]["group"] == group:
                self._release(definition["metadata"]["name"], key_of(definition))

    def _release(self, name: str, key: str) -> None:
        """Remove the finalizer of a definition without resources."""
        if self._api.store.collection(key).entries:
            return
        try:
            definition = copied(self._api.get(CRDS, None, name))
        except StatusError:
            return
        finalizers = definition["metadata"].get("finalizers") or []
        if FINALIZER in finalizers:
            definition["metadata"]["finalizers"] = [one for one in finalizers if one != FINALIZER]
            self._api.update(CRDS, definition)


def resources_of(definition: Obj) -> list[Resource]:
    """The resources of a definition, the preferred version first."""
    spec = definition["spec"]
    names = definition["status"]["acceptedNames"]
    storage = next(version["name"] for version in spec["versions"] if version["storage"])
    found = []
    for version in served_versions(definition):
        subresources = version.get("subresources") or {}
        offered = [("status", STATUS), ("scale", SCALE)]
        warning = version.get("deprecationWarning", "")
        if version.get("deprecated") and not warning:
            warning = f"{spec['group']}/{version['name']} {names['kind']} is deprecated"
        found.append(
            Resource(
                spec["group"],
                version["name"],
                names["kind"],
                names["plural"],
                names.get("singular", ""),
                spec["scope"] == "Namespaced",
                tuple(names.get("shortNames") or ()),
                tuple(names.get("categories") or ()),
                ALL_VERBS,
                tuple(sub for name, sub in offered if subresources.get(name) is not None),
                names.get("listKind", ""),
                storage,
                custom=True,
                warning=warning,
            )
        )
    return found
