"""Writes docs/cli/json.md from the models of answers: ``python -m pages.answers docs/cli/json.md``.

``make docs`` writes the page, and a test fails when it lags behind.
"""

import pkgutil
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import plimsoll.app.memory
import plimsoll.check
import plimsoll.cli.views
import plimsoll.inspection
import plimsoll.simulation
from plimsoll.answers.answer import API_VERSION, Answer

Schema = Mapping[str, Any]

#: Where answers of commands are.
PACKAGES = (
    plimsoll.app.memory,
    plimsoll.cli.views,
    plimsoll.inspection,
    plimsoll.check,
    plimsoll.simulation,
)

HEAD = f"""# JSON of the commands

`-o json` and `-o yaml` print one answer with `apiVersion: {API_VERSION}` and a `kind`. A field is
removed or changes its meaning only with a new version; new fields may appear in any, so a reader ignores
fields that it does not know. A field without a value is absent. In all answers a move leaves its `sourceNode`
for its `targetNode`, and its replacement landed on `landedNode`. The tables follow the models:
`plimsoll.answers.answer.Answer` is their base, and `model_json_schema()` of a kind is its JSON schema.

Written by `make docs` from the code: change that.
"""


def kinds() -> list[type[Answer]]:
    """All answers of commands and of the live page, sorted."""
    for package in PACKAGES:
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            import_module(module.name)
    names = tuple(f"{package.__name__}." for package in PACKAGES)
    found = (kind for kind in Answer.__subclasses__() if kind.__module__.startswith(names))
    return sorted(found, key=lambda kind: kind.__name__)


def page() -> str:
    """The whole page."""
    return HEAD + "".join(section for kind in kinds() for section in _sections(kind))


def _sections(kind: type[Answer]) -> Iterator[str]:
    """A heading for the kind, and tables of its fields and of the parts that they have."""
    schema = kind.model_json_schema(mode="serialization")
    parts: Mapping[str, Schema] = schema.get("$defs", {})
    yield f"\n## {kind.__name__}\n\n{_prose(schema)}\n\n{_table(schema, parts)}"
    for name, part in parts.items():
        if "properties" in part:
            yield f"\n### {kind.__name__}: {name}\n\n{_prose(part)}\n\n{_table(part, parts)}"


def _prose(schema: Schema) -> str:
    """The first paragraph of its docstring."""
    return " ".join(str(schema.get("description", "")).partition("\n\n")[0].split())


def _table(schema: Schema, parts: Mapping[str, Schema]) -> str:
    rows = [
        f"| `{name}` | {_type(field, parts)} | {_cell(field.get('description', ''))} |\n"
        for name, field in schema.get("properties", {}).items()
    ]
    return "| Field | Type | Meaning |\n| --- | --- | --- |\n" + "".join(rows)


def _type(field: Schema, parts: Mapping[str, Schema]) -> str:
    if "$ref" in field:
        name = str(field["$ref"]).rpartition("/")[2]
        return _type(parts[name], parts) if "enum" in parts[name] else name
    if either := field.get("anyOf") or field.get("allOf") or field.get("oneOf"):
        return " or ".join(dict.fromkeys(_type(each, parts) for each in either if each.get("type") != "null"))
    if "enum" in field:
        return " or ".join(f"`{value}`" for value in field["enum"])
    if "const" in field:
        return f"`{field['const']}`"
    if field.get("type") == "array":
        return f"list of {_type(field['items'], parts)}" if field.get("items") else "list"
    if field.get("type") == "object":
        values = field.get("additionalProperties")
        return f"map to {_type(values, parts)}" if isinstance(values, dict) else "object"
    return str(field.get("type", "any"))


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
