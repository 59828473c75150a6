"""Computes sets of fields in the form ``fieldsV1`` of managedFields.

A set is a tree of dicts. A step is ``f:name`` (a field), ``k:{"name":"main"}`` (a list element by its keys)
or ``v:"x"`` (an element of a set of values). A step is a member where its tree is empty or contains ``"."``.

Source: sigs.k8s.io/structured-merge-diff v6 (``typed/tofieldset.go``, ``typed/compare.go``, ``fieldpath``).
"""

from __future__ import annotations

from typing import Any

import orjson

from roadstead.schemas.schemas import ANY, Array, Mapping, Node, Struct

Fields = dict[str, Any]

#: The type of an object without schema: its fields are owned one by one, its lists as a whole.
_LOOSE = Mapping(ANY)


def child(node: Node, key: str) -> Node:
    """The type of a field."""
    if isinstance(node, Struct):
        return node.fields.get(key, ANY)
    return node.values if isinstance(node, Mapping) else ANY


def granular(node: Node, value: Any) -> Node | None:
    """The node whose parts are owned one by one, or None where the value is owned as a whole."""
    if isinstance(value, dict):
        if isinstance(node, (Struct, Mapping)):
            return None if node.atomic else node
        return _LOOSE if node is ANY else None
    if isinstance(value, list) and isinstance(node, Array) and not node.atomic:
        return node if node.is_set or all(_is_named(node, item) for item in value) else None
    return None


def _is_named(node: Array, item: Any) -> bool:
    return isinstance(item, dict) and any(key in item or key in node.defaults for key in node.keys)


def element(node: Array, item: Any) -> str:
    """The step that names an element of a list, by the keys that it has.

    Raises:
        KeyError: the element has none of the keys.
    """
    if node.is_set:
        return "v:" + orjson.dumps(item).decode()
    known = {**node.defaults, **item} if isinstance(item, dict) else {}
    keys = {key: known[key] for key in node.keys if key in known}
    if not keys:
        raise KeyError(", ".join(node.keys))
    return "k:" + orjson.dumps(keys, option=orjson.OPT_SORT_KEYS).decode()


def applied(value: Any, node: Node) -> Fields:
    """The set of an applied object: its leaves, and the elements of its lists."""
    inner = granular(node, value)
    if inner is None or not value:
        return {}
    fields: Fields = {}
    if isinstance(inner, Array):
        for item in value:
            below = applied(item, inner.items)
            fields[element(inner, item)] = {".": {}, **below} if below else {}
        return fields
    for key, item in value.items():
        below = applied(item, child(inner, key))
        if below and isinstance(inner, Mapping):
            below = {".": {}, **below}
        fields["f:" + key] = below
    return fields


def whole(value: Any, node: Node) -> Fields:
    """The set of an added or removed value: as ``applied``, with maps and lists themselves."""
    inner = granular(node, value)
    if inner is None or not value:
        return {}
    if isinstance(inner, Array):
        fields: Fields = {".": {}}
        for item in value:
            below = whole(item, inner.items)
            fields[element(inner, item)] = {".": {}, **below} if below else {}
        return fields
    fields = {".": {}} if isinstance(inner, Mapping) else {}
    known = inner.fields if isinstance(inner, Struct) else None
    for key, item in value.items():
        if isinstance(item, (dict, list)):
            fields["f:" + key] = whole(item, child(inner, key) if known is None else known.get(key, ANY))
        else:
            fields["f:" + key] = {}
    return fields


def compared(old: Any, new: Any, node: Node) -> tuple[Fields, Fields]:
    """The fields that were added or modified, and those that were removed.

    ``old`` and ``new`` are both objects or both lists that are owned in parts.
    """
    inner = granular(node, new)
    changed: Fields = {}
    removed: Fields = {}
    if isinstance(inner, Array):
        before = {element(inner, item): (item, inner.items) for item in old}
        after = {element(inner, item): (item, inner.items) for item in new}
    else:
        assert inner is not None
        before = {"f:" + key: (item, child(inner, key)) for key, item in old.items()}
        after = {"f:" + key: (item, child(inner, key)) for key, item in new.items()}
    for step, (item, kind) in after.items():
        if step not in before:
            below = whole(item, kind)
            changed[step] = {".": {}, **below} if below and step[0] == "k" else below
            continue
        was = before[step][0]
        if was == item:
            continue
        if granular(kind, item) is not None and granular(kind, was) is not None and type(was) is type(item):
            more, less = compared(was, item, kind)
            if more:
                changed[step] = more
            if less:
                removed[step] = less
        else:
            changed[step] = {}
    for step, (item, kind) in before.items():
        if step not in after:
            below = whole(item, kind)
            removed[step] = {".": {}, **below} if below and step[0] == "k" else below
    return changed, removed


def _is_member(fields: Fields) -> bool:
    return not fields or "." in fields


def union(left: Fields, right: Fields) -> Fields:
    """The members of either set."""
    result = dict(left)
    for step, below in right.items():
        if step == ".":
            result["."] = {}
            continue
        if step not in left:
            result[step] = below
            continue
        merged = union(left[step], below)
        if merged and (_is_member(left[step]) or _is_member(below)):
            merged = {**merged, ".": {}}
        result[step] = merged
    return result


def difference(left: Fields, right: Fields) -> Fields:
    """The members of the left set that are not in the right one."""
    result: Fields = {}
    for step, below in left.items():
        if step == ".":
            if "." not in right:
                result["."] = {}
            continue
        if step not in right:
            result[step] = below
            continue
        other = right[step]
        member = _is_member(below) and not _is_member(other)
        rest = {key: value for key, value in difference(below, other).items() if key != "."}
        if rest:
            result[step] = {".": {}, **rest} if member else rest
        elif member:
            result[step] = {}
    return result


def intersection(left: Fields, right: Fields) -> list[tuple[str, ...]]:
    """The paths that are members of both sets."""
    found: list[tuple[str, ...]] = []
    for step, below in left.items():
        if step == "." or step not in right:
            continue
        if _is_member(below) and _is_member(right[step]):
            found.append((step,))
        found += [(step, *path) for path in intersection(below, right[step])]
    return found


def path_text(path: tuple[str, ...]) -> str:
    """A path in messages, such as ``.spec.containers[name="main"].image``."""
    text = ""
    for step in path:
        if step.startswith("f:"):
            text += "." + step[2:]
        elif step.startswith("k:"):
            keys = orjson.loads(step[2:])
            text += (
                "[" + ",".join(f"{key}={orjson.dumps(value).decode()}" for key, value in keys.items()) + "]"
            )
        else:
            text += f"[={step[2:]}]"
    return text
