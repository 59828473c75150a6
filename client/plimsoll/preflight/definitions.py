"""Compares the installed CustomResourceDefinitions with those of this version, and detects name conflicts."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import orjson

from plimsoll.api.crds import COMPARED, SCHEMAS
from plimsoll.api.schema.resource import GROUP, VERSION, CustomResource
from plimsoll.api.v1alpha1 import KINDS
from plimsoll.preflight.findings import Area, Finding, Level, Unread, unchecked

#: Maximum number of field paths that a sentence names.
NAMED = 3

#: The command that installs the definitions.
INSTALL = "plimsoll crds | kubectl apply --server-side -f -"

Document = Mapping[str, Any]


def judged_definitions(
    found: Mapping[str, Document | Unread | None], *, tells_missing: bool = True
) -> Iterator[Finding]:
    """Findings about each of our definitions, and one about those that could not be read.

    Args:
        found: The object by the name of the definition; None if it does not exist.
        tells_missing: Whether missing definitions are findings.
    """
    for kind in KINDS:
        name = kind.definition.name
        document = found.get(name)
        if isinstance(document, Unread):
            continue
        if document is None:
            if tells_missing:
                problem = "it is not installed"
                yield Finding(Area.DEFINITIONS, Level.ERROR, name, problem, f"install it: {INSTALL}")
        else:
            yield _judged(kind, document)
    unread = [each for each in found.values() if isinstance(each, Unread)]
    if unread:
        yield unchecked(Area.DEFINITIONS, "customresourcedefinitions", *unread)


def _judged(kind: type[CustomResource], document: Document) -> Finding:
    name, spec = kind.definition.name, document.get("spec") or {}
    problem = _unusable(kind, document)
    if problem:
        return Finding(Area.DEFINITIONS, Level.ERROR, name, *problem)
    version = _version(spec)
    installed = ((version or {}).get("schema") or {}).get("openAPIV3Schema") or {}
    wanted = _wanted()[name]
    missing = tuple(_missing(wanted, installed))
    if missing:
        message = f"its schema is older than this version: it lacks {_named(missing)}"
        remedy = f"the API server drops what a schema does not have; replace it: {INSTALL}"
        return Finding(Area.DEFINITIONS, Level.ERROR, name, message, remedy)
    added = tuple(_missing(installed, wanted))
    if added:
        message = f"its schema is newer than this version: it also has {_named(added)}"
        return Finding(Area.DEFINITIONS, Level.WARNING, name, message, "use a newer plimsoll")
    changed = tuple(_changed(wanted, installed))
    if changed:
        message = f"its schema is not that of this version: {_named(changed)} differ"
        return Finding(Area.DEFINITIONS, Level.WARNING, name, message, f"replace it: {INSTALL}")
    return Finding(Area.DEFINITIONS, Level.OK, name, f"{VERSION} is served with the schema of this version")


@cache
def _wanted() -> Mapping[str, Document]:
    """The compared parts of the schemas of this version, by the name of the definition."""
    schemas: Mapping[str, Document] = orjson.loads(SCHEMAS.read_bytes())
    return schemas


def _unusable(kind: type[CustomResource], document: Document) -> tuple[str, str] | None:
    """Why the server does not serve a definition as it should, and the remedy."""
    spec, definition = document.get("spec") or {}, kind.definition
    conditions = {each.get("type"): each for each in (document.get("status") or {}).get("conditions") or ()}
    if (document.get("metadata") or {}).get("deletionTimestamp"):
        return "it is being deleted, and all its objects with it", f"wait, then install it: {INSTALL}"
    refused = conditions.get("NamesAccepted") or {}
    if refused.get("status") == "False":
        return (
            f"its names collide with those of another definition: {refused.get('message', '')}",
            "rename or delete the other definition; the API server then accepts the names",
        )
    if (conditions.get("Established") or {}).get("status") != "True":
        return (
            "it is not established: the API server does not serve it yet",
            "wait some seconds, run it again",
        )
    version = _version(spec)
    if version is None or not version.get("served"):
        served = [each.get("name") for each in spec.get("versions") or () if each.get("served")]
        return (
            f"{VERSION} is not served, only {', '.join(map(str, served)) or 'nothing'}",
            f"replace it: {INSTALL}",
        )
    if spec.get("scope") != definition.scope:
        return (
            f"its scope is {spec.get('scope')}, not {definition.scope}",
            f"delete it, then install it: {INSTALL}",
        )
    if "status" not in (version.get("subresources") or {}):
        return "it has no status subresource: no status can be written", f"replace it: {INSTALL}"
    return None


def _version(spec: Document) -> Document | None:
    return next((each for each in spec.get("versions") or () if each.get("name") == VERSION), None)


def _missing(wanted: Document, installed: Document, path: str = "") -> Iterator[str]:
    """Paths of fields that only the first schema has; for a missing object only its own path."""
    if installed.get("x-kubernetes-preserve-unknown-fields") and "properties" not in installed:
        return
    others = installed.get("properties") or {}
    for name, field in (wanted.get("properties") or {}).items():
        here = f"{path}.{name}" if path else name
        if name in others:
            yield from _missing(field, others[name], here)
        elif path or name in {"spec", "status"}:  # the server adds apiVersion, kind and metadata
            yield here
    for key, mark in (("items", "[]"), ("additionalProperties", ".*")):
        if isinstance(wanted.get(key), Mapping) and isinstance(installed.get(key), Mapping):
            yield from _missing(wanted[key], installed[key], path + mark)


def _changed(wanted: Document, installed: Document, path: str = "") -> Iterator[str]:
    """Paths of fields whose meaning differs."""
    if path and any(_plain(wanted.get(key)) != _plain(installed.get(key)) for key in COMPARED):
        yield path
    others = installed.get("properties") or {}
    for name, field in (wanted.get("properties") or {}).items():
        if name in others:
            yield from _changed(field, others[name], f"{path}.{name}" if path else name)
    for key, mark in (("items", "[]"), ("additionalProperties", ".*")):
        if isinstance(wanted.get(key), Mapping) and isinstance(installed.get(key), Mapping):
            yield from _changed(wanted[key], installed[key], path + mark)


def _plain(value: object) -> object:
    """A value that compares equal to its equivalents: absent, null, false and empty are the same."""
    return sorted(map(str, value)) if isinstance(value, list) and value else value or None


def _named(paths: tuple[str, ...]) -> str:
    rest = len(paths) - NAMED
    return ", ".join(paths[:NAMED]) + (f" and {rest} more" if rest > 0 else "")


def names() -> tuple[str, ...]:
    """The names of our definitions, all in one group."""
    return tuple(f"{kind.definition.plural}.{GROUP}" for kind in KINDS)


#: The reason with which policies report a name conflict.
SHADOWED = "EvictionsShadowed"


def shadowed(built_in: str) -> str:
    """The sentence about a built-in resource that kubectl reads for a bare ``evictions``."""
    return f'kubectl takes "evictions" for the built-in {built_in}; say evictions.plimsoll.dev or plev'


def judged_names(built_in: str) -> Iterator[Finding]:
    """Findings about name conflicts.

    Args:
        built_in: The result of :func:`plimsoll.kube.custom_resources.shadowing_evictions`.
    """
    if built_in:
        message, _, remedy = shadowed(built_in).partition("; ")
        yield Finding(Area.NAMES, Level.WARNING, "evictions", message, remedy)
    else:
        yield Finding(Area.NAMES, Level.OK, "evictions", "kubectl takes the name for ours")
