"""Table 1 of ADR 24 against the tree: each target exists, and each module is a target."""

import re

from structure.sources import ROOT

TABLE = ROOT / "docs" / "adr" / "0024-two-wings" / "modules.md"
SOURCES = (
    "operator/plimsoll",
    "devcluster/src",
    "examples/demo",
    "tools/pages",
    "tools/recordings",
    "tools/trials",
)

#: Packages that are newer than the redesign: ADR 25 describes them.
NEWER = tuple(
    f"operator/plimsoll/{name}/"
    for name in ("cli", "inspection", "migration", "preflight", "simulation", "snapshots", "web_pages")
)

_SPAN = re.compile(r"`([^`]+)`")


def rows(page: str) -> list[dict[str, str]]:
    """The rows of all tables of a page that have the column "New"."""
    found: list[dict[str, str]] = []
    header: list[str] = []
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")] if line.startswith("|") else []
        if not cells or set("".join(cells)) <= set("-:| "):
            header = header if cells else []
        elif not header:
            header = cells
        elif "New" in header:
            found.append(dict(zip(header, cells, strict=True)))
    return found


def targets(page: str) -> set[str]:
    """The modules and packages that the table names, as paths below the root of the repository."""
    return {path_of(name) for row in rows(page) for name in _SPAN.findall(row["New"])}


def path_of(name: str) -> str:
    """A name of the table as a path: without a known beginning it is below ``operator/plimsoll``."""
    name = "" if name == "plimsoll" else name.removesuffix("/__init__")
    outside = name.startswith(("devcluster/", "examples/", "tools/"))
    return name if outside else f"operator/plimsoll/{name}".removesuffix("/")


def modules() -> set[str]:
    """The modules of the tree, without suffix; a package is its folder."""
    return {
        path.relative_to(ROOT).with_suffix("").as_posix().removesuffix("/__init__")
        for source in SOURCES
        for path in (ROOT / source).rglob("*.py")
    }


def test_each_target_exists() -> None:
    """As a module or as a package."""
    assert sorted(targets(TABLE.read_text(encoding="utf-8")) - modules()) == []


def test_each_module_is_a_target() -> None:
    """Of a module of before, or in the list of the new ones at the end."""
    named = targets(TABLE.read_text(encoding="utf-8"))

    new = {name for name in modules() - named if not name.startswith(NEWER)}
    assert sorted(name for name in new if (ROOT / f"{name}.py").exists()) == []
