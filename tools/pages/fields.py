"""Writes the fields of our kinds: ``python -m pages.fields docs/reference/kinds``.

``make docs`` writes the pages, and a test fails when they lag behind.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from plimsoll.api.crds import structural
from plimsoll.api.v1alpha1.audit import AuditedEviction

ROOT = Path(__file__).parents[2]
Schema = Mapping[str, Any]

HEAD = """
`apiVersion: plimsoll.dev/v1alpha1`. `[]` marks the entries of a list, `{}` the values of a map. Written
by `make docs` from the models in `client/plimsoll/api`: change those.

| Field | Type | Default | Meaning |
| --- | --- | --- | --- |
"""

LINE = """A line of the audit log (`--audit-log`): an [Eviction](eviction.md) record at its end. A line may
come twice, with the same `uid`. The same as [JSON schema](auditedeviction.schema.json).
"""


def pages() -> dict[str, str]:
    """Returns a page for each kind, keyed by its file's name."""
    found = {}
    for file in sorted((ROOT / "crds").glob("*.yaml")):
        spec = yaml.safe_load(file.read_text(encoding="utf-8"))["spec"]
        (version,) = spec["versions"]
        found[f"{spec['names']['kind'].lower()}.md"] = page(
            spec["names"]["kind"], version["schema"]["openAPIV3Schema"]
        )
    raw = AuditedEviction.model_json_schema(by_alias=True)
    line = {name: structural(part, raw["$defs"]) for name, part in raw["properties"].items()}
    needed = raw["required"]
    rows = "".join(row for name in line for row in _rows(name, line[name], required=name in needed))
    found["auditedeviction.md"] = f"# AuditedEviction\n\n{LINE}{HEAD}{rows}"
    return found


def line_schema() -> str:
    """Returns the JSON schema of a line of the audit log."""
    draft = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return json.dumps({**draft, **AuditedEviction.model_json_schema(by_alias=True)}, indent=1) + "\n"


def page(kind: str, schema: Schema) -> str:
    """Returns the page of a kind, from the schema of its objects."""
    parts = {name: schema["properties"][name] for name in ("spec", "status") if name in schema["properties"]}
    rows = "".join(row for name, part in parts.items() for row in _rows(name, part, required=name == "spec"))
    return f"# {kind}\n\n{_cell(schema.get('description', ''))}\n{HEAD}{rows}"


def _rows(path: str, schema: Schema, *, required: bool) -> Iterator[str]:
    default = _default(schema, required=required)
    yield f"| `{path}` | {_type(schema)} | {default} | {_cell(schema.get('description', ''))} |\n"
    needed = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        yield from _rows(f"{path}.{name}", field, required=name in needed)
    for mark, key in (("[]", "items"), ("{}", "additionalProperties")):
        inner = schema.get(key)
        if isinstance(inner, Mapping):
            for name, field in inner.get("properties", {}).items():
                yield from _rows(f"{path}{mark}.{name}", field, required=name in inner.get("required", ()))


def _type(schema: Schema) -> str:
    if schema.get("x-kubernetes-int-or-string"):
        return "integer or string"
    if "enum" in schema:
        return " or ".join(f"`{each}`" for each in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema['items'])}"
    values = schema.get("additionalProperties")
    if isinstance(values, Mapping):
        return f"map to {_type(values)}"
    return str(schema.get("format") or schema.get("type", "any"))


def _default(schema: Schema, *, required: bool) -> str:
    if "default" not in schema:
        return "required" if required else ""
    value = schema["default"]
    return f"`{yaml.safe_dump(value, default_flow_style=True).removesuffix('...' + chr(10)).strip()}`"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for page_name, text in pages().items():
        (folder / page_name).write_text(text, encoding="utf-8")
    (folder / "auditedeviction.schema.json").write_text(line_schema(), encoding="utf-8")
