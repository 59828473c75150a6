"""Serves lists: versions, selectors, pages.

A page token names the version of the first page and the last key of the page, so that later pages show the
same state; the state of an old version is the current one with later changes undone.
"""

from __future__ import annotations

import base64
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson

from roadstead.values.status_errors import Cause, StatusError, bad_request, expired

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roadstead.store.api import Api
    from roadstead.store.store import Entry, Key
    from roadstead.values.resources import Resource


@dataclass(frozen=True, slots=True)
class ListOptions:
    """The parameters of a list or a watch."""

    labels: str = ""
    fields: str = ""
    limit: int = 0
    token: str = ""
    version: str = ""
    match: str = ""
    send_initial: bool | None = None
    bookmarks: bool = False
    timeout_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a list: entries, version, token of the next page, and number of remaining entries."""

    entries: list[Entry]
    revision: int
    token: str = ""
    remaining: int | None = None


def whole_number(query: Mapping[str, str], name: str) -> int:
    """A parameter that is a number; 0 where it is absent.

    Raises:
        StatusError: 400.
    """
    text = query.get(name, "")
    try:
        return int(text) if text else 0
    except ValueError:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None


def flag(text: str) -> bool:
    """Parse a boolean parameter as Go does here: every value except these is true."""
    return text.lower() not in ("false", "0")


def list_options(query: Mapping[str, str], *, watch: bool) -> ListOptions:
    """Read and check the parameters of a list or a watch.

    Raises:
        StatusError: 400 and 422.
    """
    initial = query.get("sendInitialEvents")
    version = query.get("resourceVersion", "")
    options = ListOptions(
        labels=query.get("labelSelector", ""),
        fields=query.get("fieldSelector", ""),
        limit=whole_number(query, "limit"),
        token=query.get("continue", ""),
        version=version,
        match=query.get("resourceVersionMatch", ""),
        send_initial=None if initial is None else flag(initial),
        bookmarks=flag(query.get("allowWatchBookmarks", "false")),
        timeout_seconds=whole_number(query, "timeoutSeconds") or None,
    )
    causes = list(_option_causes(options, watch=watch))
    if causes:
        faults = [f"{cause.field}: {cause.message}" for cause in causes]
        text = faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]"
        details = {
            "group": "meta.k8s.io",
            "kind": "ListOptions",
            "causes": [{"reason": one.reason, "message": one.message, "field": one.field} for one in causes],
        }
        raise StatusError(422, "Invalid", f'ListOptions.meta.k8s.io "" is invalid: {text}', details)
    if version and not version.isdigit():
        raise bad_request(
            f'resourceVersion: Invalid value: "{version}": strconv.ParseUint: parsing "{version}": invalid '
            f"syntax"
        )
    return options


def _option_causes(options: ListOptions, *, watch: bool) -> list[Cause]:
    forbidden = "FieldValueForbidden"
    causes = []
    match, initial = options.match, options.send_initial
    if watch:
        if initial is not None:
            if match != "NotOlderThan":
                message = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
                causes.append(Cause("resourceVersionMatch", f"Forbidden: {message}", forbidden))
                if match:
                    message = f'Unsupported value: "{match}": supported values: "NotOlderThan"'
                    causes.append(Cause("resourceVersionMatch", message, "FieldValueNotSupported"))
        elif match:
            causes.append(
                Cause(
                    "resourceVersionMatch",
                    "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is "
                    "provided",
                    forbidden,
                )
            )
        return causes
    if initial is not None:
        causes.append(
            Cause("sendInitialEvents", "Forbidden: sendInitialEvents is forbidden for list", forbidden)
        )
    if match:
        if options.token:
            causes.append(
                Cause(
                    "resourceVersionMatch",
                    "Forbidden: resourceVersionMatch is forbidden when continue is provided",
                    forbidden,
                )
            )
        if not options.version:
            causes.append(
                Cause(
                    "resourceVersionMatch",
                    "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
                    forbidden,
                )
            )
        if match not in ("Exact", "NotOlderThan"):
            causes.append(
                Cause(
                    "resourceVersionMatch",
                    f'Unsupported value: "{match}": supported values: "Exact", "NotOlderThan"',
                    "FieldValueNotSupported",
                )
            )
        elif match == "Exact" and options.version == "0":
            causes.append(
                Cause(
                    "resourceVersionMatch",
                    'Forbidden: resourceVersionMatch "Exact" is forbidden for resourceVersion "0"',
                    forbidden,
                )
            )
    return causes


def too_large(version: int, current: int) -> StatusError:
    """504: the version is in the future."""
    return StatusError(
        504,
        "Timeout",
        f"Timeout: Too large resource version: {version}, current: {current}",
        {"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]},
        retry_after=1,
    )


def page(api: Api, resource: Resource, namespace: str | None, options: ListOptions) -> Page:
    """One page of a list.

    Raises:
        StatusError: 400, 410 (the version is too old), 504 (the version is in the future).
    """
    collection = api.store.collection(resource.collection)
    chosen = api.matcher(resource, options.labels, options.fields)
    current = api.store.revision
    revision, after = current, None
    limit = max(options.limit, 0)
    if options.token:
        if options.version and options.version != "0":
            raise bad_request("specifying resource version is not allowed when using continue")
        revision, after = _read_token(options.token)
    elif options.version not in ("", "0"):
        asked = int(options.version)
        if asked > current:
            raise too_large(asked, current)
        if options.match == "Exact" or (limit and not options.match):
            revision = asked
    if revision >= current or (revision >= collection.complete_since and not collection.since(revision)):
        entries = api.candidates(resource, namespace, options.fields, after)
    else:
        if revision < collection.complete_since:
            raise expired(
                "The provided continue parameter is too old to display a consistent list result. "
                "You can start a new list without the continue parameter."
                if options.token
                else f"The resourceVersion for the provided list is too old: {revision}."
            )
        entries = _as_of(api, resource, namespace, revision, after)
    found = api.selected(resource, entries, chosen)
    if not limit or len(found) <= limit:
        return Page(api.all_served(resource, found), revision)
    part = found[:limit]
    meta = part[-1].obj["metadata"]
    token = _write_token(revision, (meta.get("namespace", ""), meta["name"]))
    remaining = len(found) - limit if chosen is None else None
    return Page(api.all_served(resource, part), revision, token, remaining)


def _as_of(
    api: Api, resource: Resource, namespace: str | None, revision: int, after: Key | None
) -> list[Entry]:
    """The entries at a version, in order: the current ones with later changes undone."""
    collection = api.store.collection(resource.collection)
    undone: dict[Key, Entry | None] = {}
    for change in reversed(collection.since(revision)):
        meta = change.entry.obj["metadata"]
        undone[meta.get("namespace", ""), meta["name"]] = change.previous
    keys = sorted({*collection.entries, *undone})
    start = bisect_right(keys, after) if after else 0
    found = []
    for key in keys[start:]:
        entry = undone[key] if key in undone else collection.entries.get(key)
        if entry is not None and (namespace is None or key[0] == namespace):
            found.append(entry)
    return found


def _write_token(revision: int, key: Key) -> str:
    content = orjson.dumps({"v": "meta.k8s.io/v1", "rv": revision, "start": "/".join(key)})
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def _read_token(token: str) -> tuple[int, Key]:
    try:
        content = orjson.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        namespace, _, name = content["start"].partition("/")
        return int(content["rv"]), (namespace, name)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise bad_request("continue key is not valid: decoding failed") from None
