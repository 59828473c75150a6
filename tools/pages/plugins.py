"""A page for each plugin from its docstring and arguments: ``python -m pages.plugins``.

What a page says is what the code says; ``make docs`` writes the pages, and a test fails when they lag behind.
Authors of plugins can make theirs with :func:`page`.
"""

import inspect
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from plimsoll.framework import Plugin, Reads
from plimsoll.framework.capabilities import declares_of
from plimsoll.framework.registry import EXTENSION_POINTS, implements
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE

#: The parts of a plugin's docstring, in order.
SECTIONS = ("Formula", "Units", "Edges", "Source", "Differs")

READS = {
    Reads.NODE: "the pod's template and the node object",
    Reads.ROW: "the pod's template, the node object and the pods on that node",
    Reads.CLUSTER: "pods or objects anywhere; computed again after any change",
    Reads.POD: "the individual pod; computed again for every pod",
}

_MARK = re.compile(rf"^({'|'.join(SECTIONS)})(?=[,:])", flags=re.MULTILINE)


class PageError(Exception):
    """A plugin does not say what its page must say."""


def file_name(plugin: type[Any]) -> str:
    """The page's name, as the module's: ``node_resources_fit.md``."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", plugin.name).lower() + ".md"


def page(plugin: type[Plugin]) -> str:
    """The page of one plugin, in Markdown.

    Raises:
        PageError: Its docstring lacks a section, or an argument has no description.
    """
    summary, sections = sections_of(plugin)
    lines = [f"# {plugin.name}", "", summary, ""]
    points = ", ".join(f"`{point}`" for point in EXTENSION_POINTS if implements(plugin, point))
    lines += [f"- Extension points: {points}"]
    if (reads := declares_of(plugin).reads) is not Reads.POD:
        lines += [f"- Reads: {READS[reads]}"]
    if plugin.name in DEFAULT_PLUGINS:
        place = list(DEFAULT_PLUGINS).index(plugin.name) + 1
        weight = f", weight {DEFAULT_PLUGINS[plugin.name] or 1}" if implements(plugin, "score") else ""
        lines += [f"- Default profile: number {place} of {len(DEFAULT_PLUGINS)}{weight}"]
    for title in SECTIONS:
        lines += ["", f"## {title}", "", *sections[title]]
    lines += ["", "## Arguments", "", *arguments_of(plugin)]
    return "\n".join(lines).rstrip() + "\n"


def index(plugins: Iterable[type[Plugin]]) -> str:
    """The page that lists the others, in the order of the default profile."""
    order = {name: place for place, name in enumerate(DEFAULT_PLUGINS)}
    rows = [
        f"| [{plugin.name}]({file_name(plugin)}) | "
        f"{', '.join(point for point in EXTENSION_POINTS if implements(plugin, point))} | "
        f"{sections_of(plugin)[0]} |"
        for plugin in sorted(plugins, key=lambda each: order.get(each.name, len(order)))
    ]
    return (
        "# Plugins\n\n"
        "The in-tree plugins in the order of the default profile, which is kube-scheduler's; then those\n"
        "that a policy asks for.\n"
        "Written by `make docs` from docstrings and arguments: change those.\n"
        "A plugin of your own: [writing a plugin](../writing-a-plugin.md).\n\n"
        "| Plugin | Extension points | What it does |\n| --- | --- | --- |\n" + "\n".join(rows) + "\n"
    )


def pages(plugins: Iterable[type[Plugin]] = IN_TREE) -> dict[str, str]:
    """All pages by file name."""
    known = tuple(plugins)
    return {"README.md": index(known)} | {file_name(plugin): page(plugin) for plugin in known}


def main(folder: Path) -> None:
    """Write the pages into a folder, and remove pages of plugins that are no more."""
    folder.mkdir(parents=True, exist_ok=True)
    written = pages()
    for stale in set(folder.glob("*.md")) - {folder / name for name in written}:
        stale.unlink()
    for name, text in written.items():
        (folder / name).write_text(text, encoding="utf-8")


# -- the docstring -----------------------------------------------------------------------------------


def sections_of(plugin: type[Any]) -> tuple[str, dict[str, list[str]]]:
    """The summary, and the lines of each section in Markdown.

    Raises:
        PageError: The summary or a section is missing.
    """
    text = inspect.getdoc(sys.modules[plugin.__module__]) or ""
    head, _, body = text.partition("\n\n")
    name, colon, summary = " ".join(head.split()).partition(": ")
    if not colon or name != plugin.name:
        raise PageError(f'{plugin.__module__}: the docstring must begin with "{plugin.name}: " and a summary')
    found: dict[str, list[str]] = {title: [] for title in SECTIONS}
    marks = list(_MARK.finditer(body))
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        content = body[mark.end() : following.start() if following else len(body)]
        part = found[mark.group(1)]
        part += ([""] if part else []) + _markdown(
            content if content.startswith("::") else content[1:].strip()
        )
    missing = [title for title, lines in found.items() if not lines]
    if missing:
        raise PageError(f"{plugin.__module__}: the docstring lacks {', '.join(missing)}")
    return _inline(_capital(summary)), found


def _markdown(text: str) -> list[str]:
    """Paragraphs and literal blocks of a docstring in Markdown."""
    lines: list[str] = []
    literal: list[str] = []
    expects_literal = False
    for line in [*text.strip("\n").splitlines(), None]:
        is_literal = expects_literal and line is not None and (line.startswith("    ") or not line.strip())
        if is_literal:
            literal.append(line or "")
            continue
        if literal:
            block = inspect.cleandoc("\n".join(literal)).splitlines()
            lines += ["", "```text", *block, "```", ""]
            literal, expects_literal = [], False
        if line is None:
            break
        plain = line.rstrip()
        if plain.endswith("::"):
            expects_literal = True
            plain = plain.removesuffix("::") + (":" if plain != "::" else "")
        lines.append(_inline(plain if lines else _capital(plain)))
    return _collapsed(lines)


def _capital(text: str) -> str:
    """With a capital, unless it begins with a name that has none."""
    return text if text.startswith("kube-") else text[:1].upper() + text[1:]


def _inline(text: str) -> str:
    return text.replace("``", "`")


def _collapsed(lines: list[str]) -> list[str]:
    """Without blank lines at the ends, and never two in a row."""
    result: list[str] = []
    for line in lines:
        if line.strip() or (result and result[-1]):
            result.append(line)
    while result and not result[-1]:
        result.pop()
    return result


# -- the arguments -----------------------------------------------------------------------------------


def arguments_of(plugin: type[Any]) -> list[str]:
    """The tables of its arguments, in Markdown.

    Raises:
        PageError: An argument has no description.
    """
    schema = plugin.args_model.model_json_schema(by_alias=True)
    if not schema.get("properties"):
        return ["None."]
    lines = _table(plugin.name, schema)
    for name, nested in sorted(schema.get("$defs", {}).items()):
        if nested.get("properties"):
            lines += [
                "",
                f"### {name}",
                "",
                _inline(nested.get("description", "")),
                "",
                *_table(name, nested),
            ]
    return lines


def _table(where: str, schema: Mapping[str, Any]) -> list[str]:
    required = schema.get("required", ())
    lines = ["| Argument | Type | Default | Meaning |", "| --- | --- | --- | --- |"]
    for name, field in schema["properties"].items():
        meaning = field.get("description", "")
        if not meaning:
            raise PageError(f"{where}.{name} has no description")
        default = "required" if name in required else f"`{_plain(field.get('default'))}`"
        lines.append(f"| `{name}` | {_type(field)} | {default} | {_inline(meaning)} |")
    return lines


def _type(field: Mapping[str, Any]) -> str:
    """The type in words, with its limits."""
    if "$ref" in field:
        name = field["$ref"].rsplit("/", 1)[-1]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in field:
        return " or ".join(_type(each) for each in field["anyOf"] if each.get("type") != "null")
    if "enum" in field:
        return " or ".join(f"`{each}`" for each in field["enum"])
    if "const" in field:
        return f"`{_plain(field['const'])}`"
    if field.get("type") == "array":
        return f"list of {_type(field['items'])}"
    limits = [
        f"{sign} {field[key]}"
        for key, sign in (
            ("minimum", "≥"),
            ("exclusiveMinimum", ">"),
            ("maximum", "≤"),
            ("exclusiveMaximum", "<"),
        )
        if key in field
    ]
    return ", ".join([str(field.get("type", "any")), *limits])


def _plain(value: object) -> str:
    """A value as a policy would write it, in one line."""
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "none"
    if isinstance(value, list):
        return f"[{', '.join(_plain(each) for each in value)}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_plain(each)}" for key, each in value.items()) + "}"
    return str(value) if value != "" else '""'


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/plugins"))
