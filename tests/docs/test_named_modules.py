"""Documents and the reading order name modules that exist."""

import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import plimsoll

ROOT = Path(__file__).parents[2]
NAME = re.compile(r"(?<![\w./-])plimsoll(?:\.[a-z_][a-z0-9_]*)+(?![\w/-])")
#: The same without `plimsoll.`, as tables have it: what begins with one of its packages.
SHORT = re.compile(r"`((?:[a-z_][a-z0-9_]*\.)+[a-z_][a-z0-9_]*)`")
PACKAGES = {name for _, name, _ in pkgutil.iter_modules(plimsoll.__path__)}
#: Names in documents that look like modules.
OTHERS = re.compile(r"plimsoll\.(?:dev|svc|cdx|json)\b")
FILE = re.compile(r"(?<![\w/.$…-])((?:[\w.-]+/)+[\w.-]+\.(?:py|c|html|ya?ml|toml|md|json|svg))(?![\w/])")
FOLDERS = {each.name for each in ROOT.iterdir() if each.is_dir()}
SAMPLE = ROOT / "examples/sample-plugin"
#: An example of a name to give.
YOURS = "tests/plugins/test_your_plugin.py"
PAGES = sorted(
    each
    for each in {*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")}
    if each != ROOT / "CHANGELOG.md" and each.parent.name != "adr"
)


def named(text: str) -> list[str]:
    """The modules that a text names, in order."""
    short = [f"plimsoll.{name}" for name in SHORT.findall(text) if name.partition(".")[0] in PACKAGES]
    return [name for name in dict.fromkeys([*NAME.findall(text), *short]) if not OTHERS.match(name)]


def exists(name: str) -> bool:
    """Whether there is such a module, or such an attribute of one."""
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        module, _, attribute = name.rpartition(".")
        return hasattr(importlib.import_module(module), attribute)
    return True


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_names_what_exists(page: Path) -> None:
    """Each dotted name of ours can be imported."""
    assert [name for name in named(page.read_text(encoding="utf-8")) if not exists(name)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_names_files_that_exist(page: Path) -> None:
    """Each path below a folder of the repository, or of the sample plugin, which has a page of its own."""
    text = page.read_text(encoding="utf-8")
    paths = [path for path in FILE.findall(text) if path.split("/")[0] in FOLDERS and path != YOURS]
    starts = (ROOT, SAMPLE, page.parent)

    assert [path for path in paths if not any((each / path).exists() for each in starts)] == []


def test_the_reading_order_is_importable() -> None:
    """At most 12 modules from the watch to a binding, and 18 from a schedule to a verified move."""
    section = (ROOT / "docs/architecture.md").read_text(encoding="utf-8").partition("## Reading order")[2]
    flows = section.split("```")[1:4:2]

    assert [exists(name) for flow in flows for name in named(flow)].count(False) == 0
    assert [len(named(flow)) <= most for flow, most in zip(flows, (12, 18), strict=True)] == [True, True]


def test_a_module_that_is_gone_is_noticed() -> None:
    """Among names that exist."""
    assert named(
        "`plimsoll.model` and plimsoll.control.heeding, `kube.gone`; plimsoll.dev/evict, kind of plimsoll.dev"
    ) == [
        "plimsoll.model",
        "plimsoll.control.heeding",
        "plimsoll.kube.gone",
    ]
    with pytest.raises(ModuleNotFoundError):
        exists("plimsoll.control.heeding")
