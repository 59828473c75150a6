"""Applies JSON merge patch (RFC 7386), JSON patch (RFC 6902) and strategic merge patch."""

from __future__ import annotations

from typing import Any

from roadstead.schemas.schemas import ANY, Array, Mapping, Node, Struct
from roadstead.values.copies import copied
from roadstead.values.status_errors import StatusError, bad_request


def merge(target: Any, patch: Any) -> Any:
    """Apply a JSON merge patch; ``target`` is not changed, but the result shares parts with it."""
    if not isinstance(patch, dict):
        return patch
    target = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        else:
            target[key] = merge(target.get(key), value)
    return target


class TestFailedError(StatusError):
    """The operation ``test`` of a JSON patch has found another value."""

    __test__ = False


# -- JSON patch ----------------------------------------------------------------------------------------------


def _unprocessable(message: str, error: type[StatusError] = StatusError) -> StatusError:
    return error(422, "Invalid", f"the server rejected our request due to an error in our request: {message}")


def json_patch(target: Any, patch: Any) -> Any:
    """Apply a JSON patch; ``target`` is changed in place.

    Raises:
        StatusError: 400, if it is malformed; 422, if an operation fails.
    """
    if not isinstance(patch, list) or not all(isinstance(one, dict) for one in patch):
        raise bad_request("a JSON patch must be a list of operations")
    for operation in patch:
        target = _operate(target, operation)
    return target


def _operate(target: Any, operation: dict[str, Any]) -> Any:
    name, path = operation.get("op"), operation.get("path")
    if name not in ("add", "remove", "replace", "move", "copy", "test"):
        raise _unprocessable(f"Unexpected kind: {name}")
    if not isinstance(path, str):
        raise _unprocessable(f"{name} operation failed to decode path: missing value")
    steps, value = _steps(path), operation.get("value")
    match name:
        case "test":
            if _read(target, steps, missing=None) != value:
                raise _unprocessable(f"testing value {path} failed: test failed", TestFailedError)
            return target
        case "remove":
            return _remove(target, steps, path, name)
        case "replace":  # as upstream's library, adds a missing key
            if not steps:
                return value
            parent = _parent(target, steps, f"{name} operation does not apply: doc is missing path: {path}")
            parent[_index(parent, steps[-1]) if isinstance(parent, list) else steps[-1]] = value
            return target
        case "move" | "copy":
            return _taken(target, steps, path, operation, name)
    return _add(target, steps, value, f'{name} operation does not apply: doc is missing path: "{path}"')


def _taken(target: Any, steps: list[str], path: str, operation: dict[str, Any], name: str) -> Any:
    """The target after a move, or a copy, of which upstream's library copies null from a missing key."""
    given = operation.get("from")
    if not isinstance(given, str):
        raise _unprocessable(f"{name} operation failed to decode from: missing value")
    source = _steps(given)
    if source:
        _parent(target, source, f"{name} operation does not apply: doc is missing from path: {given}")
    value = _read(target, source, missing=None if name == "copy" else _REQUIRED)
    if name == "move":
        target = _remove(target, source, given, name)
    missing = f"{name} operation does not apply: doc is missing destination path: {path}"
    return _add(target, steps, copied(value), missing)


def _steps(path: str) -> list[str]:
    if not path:
        return []
    if not path.startswith("/"):
        raise _unprocessable(f"the path {path} must begin with a slash")
    return [step.replace("~1", "/").replace("~0", "~") for step in path[1:].split("/")]


_REQUIRED = object()


def _read(target: Any, steps: list[str], missing: Any = _REQUIRED) -> Any:
    for step in steps:
        try:
            target = target[_index(target, step)] if isinstance(target, list) else target[step]
        except (KeyError, TypeError, IndexError):
            if missing is not _REQUIRED:
                return missing
            raise _unprocessable(f"the path /{'/'.join(steps)} does not exist: missing value") from None
    return target


def _parent(target: Any, steps: list[str], missing: str) -> Any:
    """The list or object of the last step.

    Raises:
        StatusError: 422, with the words of ``missing``.
    """
    found = _read(target, steps[:-1], missing=None)
    if not isinstance(found, dict | list):
        raise _unprocessable(f"{missing}: missing value")
    return found


def _index(items: list[Any], step: str, *, past_end: bool = False) -> int:
    if past_end and step == "-":
        return len(items)
    if not step.lstrip("-").isdigit():
        raise _unprocessable(f"{step} is no index")
    index = int(step)
    if index < 0 or index >= len(items) + past_end:
        raise _unprocessable(f"Unable to access invalid index: {step}: invalid index referenced")
    return index


def _add(target: Any, steps: list[str], value: Any, missing: str) -> Any:
    if not steps:
        return value
    parent = _parent(target, steps, missing)
    if isinstance(parent, list):
        parent.insert(_index(parent, steps[-1], past_end=True), value)
    else:
        parent[steps[-1]] = value
    return target


def _remove(target: Any, steps: list[str], path: str, name: str) -> Any:
    if not steps:
        raise _unprocessable("the whole object cannot be removed")
    parent = _parent(target, steps, f'{name} operation does not apply: doc is missing path: "{path}"')
    step = steps[-1]
    if isinstance(parent, dict) and step not in parent:
        why = f"Unable to remove nonexistent key: {step}: missing value"
        raise _unprocessable(f"error in {name} for path: '{path}': {why}")
    del parent[_index(parent, step) if isinstance(parent, list) else step]
    return target


# -- strategic merge patch -----------------------------------------------------------------------------------

_DIRECTIVE, _ORDER, _DELETE, _RETAIN = (
    "$patch",
    "$setElementOrder/",
    "$deleteFromPrimitiveList/",
    "$retainKeys",
)


def strategic(target: Any, patch: Any, schema: Node) -> Any:
    """Apply a strategic merge patch; ``target`` is not changed, but the result shares parts with it.

    Raises:
        StatusError: 400, if a list cannot be merged.
    """
    if not isinstance(patch, dict):
        return patch
    directive = patch.get(_DIRECTIVE)
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != _DIRECTIVE}
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise bad_request(f"Unknown patch type found: {directive}")
    target = dict(target) if isinstance(target, dict) else {}
    _check_directives(patch)
    if _RETAIN in patch:
        kept = patch[_RETAIN]
        for key in [key for key in target if key not in kept]:
            del target[key]
    for key, value in patch.items():
        if key in (_DIRECTIVE, _RETAIN) or key.startswith(_ORDER):
            continue
        if key.startswith(_DELETE):
            name = key.removeprefix(_DELETE)
            target[name] = [item for item in target.get(name) or [] if item not in value]
            continue
        node = _field(schema, key)
        if value is None:
            target.pop(key, None)
        elif isinstance(value, list) and isinstance(node, Array) and (node.merge_key or node.merges_values):
            target[key] = _merge_list(target.get(key) or [], value, node, patch.get(_ORDER + key))
        elif isinstance(value, dict):
            target[key] = strategic(target.get(key), value, node)
        else:
            target[key] = value
    for key, order in patch.items():
        if key.startswith(_ORDER) and key.removeprefix(_ORDER) not in patch:
            name = key.removeprefix(_ORDER)
            node = _field(schema, name)
            if isinstance(node, Array) and isinstance(target.get(name), list):
                target[name] = _ordered(target[name], order, target[name], node)
    return target


def _check_directives(patch: dict[str, Any]) -> None:
    for key, value in patch.items():
        if (key == _RETAIN or key.startswith((_ORDER, _DELETE))) and not isinstance(value, list):
            raise bad_request(f"invalid patch format of the directive {key}: it must be a list")


def _field(schema: Node, key: str) -> Node:
    if isinstance(schema, Struct):
        return schema.fields.get(key, ANY)
    return schema.values if isinstance(schema, Mapping) else ANY


def _merge_list(current: list[Any], patch: list[Any], node: Array, order: list[Any] | None) -> list[Any]:
    if not node.merge_key:
        merged = [*current, *(item for item in patch if item not in current)]
        return _ordered(merged, patch if order is None else order, current, node)
    key = node.merge_key
    if any(isinstance(item, dict) and item == {_DIRECTIVE: "replace"} for item in patch):
        return [item for item in patch if item != {_DIRECTIVE: "replace"}]
    merged = list(current)
    named = []
    for item in patch:
        if not isinstance(item, dict) or key not in item:
            raise bad_request(f"map: {item} does not contain declared merge key: {key}")
        at = next((index for index, one in enumerate(merged) if one.get(key) == item[key]), None)
        if item.get(_DIRECTIVE) == "delete":
            merged = [one for one in merged if one.get(key) != item[key]]
            continue
        named.append(item)
        if at is None:
            merged.append(strategic({}, item, node.items))
        else:
            merged[at] = strategic(merged[at], item, node.items)
    return _ordered(merged, named if order is None else order, current, node)


def _ordered(items: list[Any], order: list[Any], current: list[Any], node: Array) -> list[Any]:
    """Elements in the given order, interleaved with the others in the order of the current list.

    Source: apimachinery ``util/strategicpatch/patch.go``, normalizeElementOrder and mergeSortedSlice.
    """
    key = node.merge_key

    def name(item: Any) -> Any:
        return item.get(key) if key and isinstance(item, dict) else item

    wanted = [name(one) for one in order]
    before = [name(one) for one in current]
    named = sorted(
        (item for item in items if name(item) in wanted), key=lambda item: wanted.index(name(item))
    )
    others = [item for item in items if name(item) not in wanted]
    result: list[Any] = []
    while named and others:
        left, right = name(others[0]), name(named[0])
        first = left in before and right in before and before.index(left) < before.index(right)
        result.append(others.pop(0) if first else named.pop(0))
    return result + others + named
