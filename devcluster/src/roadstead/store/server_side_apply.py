"""Applies configurations: merges them, drops fields that the manager gave up, rejects conflicts.

Source: structured-merge-diff v6 ``merge/update.go`` and ``typed/merge.go``, whose order of list elements this
follows; apimachinery ``util/managedfields`` for messages of conflicts.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from roadstead.schemas.schemas import Array, Node
from roadstead.store.field_sets import (
    Fields,
    applied,
    child,
    compared,
    difference,
    element,
    granular,
    intersection,
    path_text,
    union,
)
from roadstead.store.managed_fields import Manager, Managers, owned
from roadstead.values.copies import copied
from roadstead.values.status_errors import StatusError, bad_request

if TYPE_CHECKING:
    from roadstead.values.resources import Obj


def _steps(node: Array, items: list[Any]) -> list[str]:
    """The names of a list's elements.

    Raises:
        StatusError: 500, if one lacks all keys or two have the same (the code is upstream's).
    """
    try:
        steps = [element(node, item) for item in items]
    except KeyError as error:
        raise _untyped(f"element of an associative list has none of the keys {error}") from None
    twice = [step for step, count in Counter(steps).items() if count > 1]
    if twice:
        raise _untyped(f"duplicate entries for key {twice[0][2:]}")
    return steps


def _untyped(why: str) -> StatusError:
    return StatusError(500, "", f"failed to create typed patch object: {why}")


def check(value: Any, node: Node) -> None:
    """Reject lists that cannot be merged.

    Raises:
        StatusError: 500, as upstream.
    """
    inner = granular(node, value)
    if isinstance(node, Array) and not node.atomic and isinstance(value, list):
        _steps(node, value)
        for item in value:
            check(item, node.items)
    elif inner is not None:
        for key, item in value.items():
            check(item, child(inner, key))


def merged(live: Any, config: Any, node: Node) -> Any:
    """The live value with the configuration merged over it; neither is changed."""
    inner = granular(node, config)
    if inner is None or type(live) is not type(config):
        return copied(config)
    if isinstance(inner, Array):
        return _merged_list(live, config, inner)
    result = dict(live)
    for key, item in config.items():
        result[key] = merged(live[key], item, child(inner, key)) if key in live else copied(item)
    return result


def _merged_list(live: list[Any], config: list[Any], node: Array) -> list[Any]:
    left, right = _steps(node, live), _steps(node, config)
    by_left, by_right = dict(zip(left, live, strict=True)), dict(zip(right, config, strict=True))
    shared = [step for step in right if step in by_left]
    result: list[Any] = []
    done: set[str] = set()

    def take(step: str) -> None:
        item = by_right[step]
        result.append(merged(by_left[step], item, node.items) if step in by_left else copied(item))
        done.add(step)
        if shared and shared[0] == step:
            shared.pop(0)

    at_left = at_right = 0
    while at_left < len(left) or at_right < len(right):
        if at_left < len(left) and at_right < len(right):
            if left[at_left] == right[at_right]:
                take(right[at_right])
                at_left, at_right = at_left + 1, at_right + 1
                continue
            if left[at_left] in by_right and shared and shared[0] != left[at_left]:
                at_left += 1
                continue
        if at_left < len(left):
            if left[at_left] not in by_right:
                result.append(by_left[left[at_left]])
                at_left += 1
                continue
            if left[at_left] in done:
                at_left += 1
        if at_right < len(right):
            take(right[at_right])
            at_right += 1
    return result


def _pruned(value: Any, last: Fields, kept: Fields, node: Node) -> Any:
    """The value without fields that were applied last and have no manager left; None if it is empty then."""
    inner = granular(node, value)
    if inner is None:
        return value
    items: list[Any] = []
    pruned: dict[str, Any] = {}
    parts: Any = enumerate(value) if isinstance(inner, Array) else value.items()
    for key, item in parts:
        step = element(inner, item) if isinstance(inner, Array) else f"f:{key}"
        if step in last and step not in kept:
            continue
        below = last.get(step)
        left = item
        if below:
            kind = inner.items if isinstance(inner, Array) else child(inner, key)
            left = _pruned(item, below, kept.get(step, {}), kind)
        if left is None:
            continue
        items.append(left)
        pruned[key] = left
    rest: Any = items if isinstance(inner, Array) else pruned
    return rest if rest or not value else None


def apply(
    live: Obj, managers: Managers, config: Obj, schema: Node, who: Manager, *, force: bool, has_status: bool
) -> tuple[Obj, Managers]:
    """The object and its managers after an apply.

    Args:
        live: the object; for a new one, the metadata that the server sets.
        managers: the managers of its fields.
        config: the applied configuration, without managedFields.
        schema: the schema of the object.
        who: the manager that applies.
        force: take fields over from other managers.
        has_status: whether status has a subresource and is therefore ignored here.

    Raises:
        StatusError: 409, if others own fields that would change; 500, if a list cannot be merged.
    """
    check(config, schema)
    if has_status and not who.subresource:
        config = {key: value for key, value in config.items() if key != "status"}
    elif who.subresource == "status":
        config = {
            key: value for key, value in config.items() if key in ("apiVersion", "kind", "metadata", "status")
        }
    wanted = owned(applied(config, schema), who.subresource)
    last: Fields = next((one.fields for one in managers if one.key == who.key), {})
    kept = wanted
    for one in managers:
        if one.key != who.key:
            kept = union(kept, one.fields)
    new = merged(live, config, schema)
    if last:
        new = _pruned(new, last, kept, schema)
    changed, removed = compared(live, new, schema)
    changed = owned(changed, who.subresource)
    others = [one for one in managers if one.key != who.key]
    conflicts = [(one, path) for one in others for path in intersection(one.fields, changed)]
    if conflicts and not force:
        raise _conflict(conflicts)
    result = []
    for one in managers:
        if one.key == who.key:
            fields = wanted
            kept_one = one if fields == one.fields else replace(who, fields=fields)
        else:
            fields = difference(difference(one.fields, changed), removed)
            kept_one = one if fields == one.fields else replace(one, fields=fields)
        if fields:
            result.append(kept_one)
    if wanted and all(one.key != who.key for one in managers):
        result.append(replace(who, fields=wanted))
    return new, tuple(result)


def _name(manager: Manager) -> str:
    text = f'"{manager.name}"'
    if manager.subresource:
        text += f' with subresource "{manager.subresource}"'
    return f"{text} using {manager.api_version}" if manager.operation == "Update" else text


def _conflict(conflicts: list[tuple[Manager, tuple[str, ...]]]) -> StatusError:
    pairs = sorted({(_name(manager), path_text(path)) for manager, path in conflicts})
    if len(pairs) == 1:
        message = f"Apply failed with 1 conflict: conflict with {pairs[0][0]}: {pairs[0][1]}"
    else:
        lines = []
        for name in dict.fromkeys(name for name, _ in pairs):
            lines.append(f"conflicts with {name}:")
            lines += [f"- {path}" for other, path in pairs if other == name]
        message = f"Apply failed with {len(pairs)} conflicts: " + "\n".join(lines)
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {name}", "field": path}
        for name, path in pairs
    ]
    return StatusError(409, "Conflict", message, {"causes": causes})


def checked_config(config: Any) -> Obj:
    """An applied body as an object.

    Raises:
        StatusError: 400.
    """
    if not isinstance(config, dict) or not config.get("apiVersion") or not config.get("kind"):
        raise bad_request("error decoding YAML: Object 'Kind' is missing or the body is no object")
    metadata = config.setdefault("metadata", {})
    if not isinstance(metadata, dict) or metadata.get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    metadata.pop("managedFields", None)
    return config
