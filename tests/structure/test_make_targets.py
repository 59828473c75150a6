"""Every target of the Makefile is declared phony; workflows call no others."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text()
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))

#: Where modules that are called with ``python -m`` are looked for.
FOLDERS = ("tools", "operator", "tests", "devcluster/src", "examples", "benchmarks")


def targets_of(makefile: str) -> set[str]:
    return set(re.findall(r"^([a-z][a-z0-9-]*):", makefile, re.MULTILINE))


def scripts(workflow: str) -> Iterator[str]:
    """What the steps of a workflow run."""
    for job in yaml.safe_load(workflow)["jobs"].values():
        yield from (step["run"] for step in job.get("steps", ()) if "run" in step)


def calls_of_make(script: str) -> Iterator[tuple[str, str]]:
    """Targets and variables that a script hands to make, each with what it is."""
    for line in re.findall(r"\bmake ([^\n|&;]+)", script):
        for word in shlex.split(line, comments=True):
            name, is_variable, _ = word.partition("=")
            yield ("variable" if is_variable else "target", name)


def strangers(script: str, makefile: str) -> list[str]:
    """Targets that the Makefile lacks, variables that it does not read, and modules that are not there."""
    known = {
        "target": targets_of(makefile),
        "variable": set(re.findall(r"\$\((?:if |or |origin )?([A-Z_]+)", makefile)),
    }
    modules = re.findall(r"python -m ([a-z_.]+)", script)
    return [f"{kind} {name}" for kind, name in calls_of_make(script) if name not in known[kind]] + [
        f"module {each}"
        for each in modules
        if each != "pip" and not any(_is_module(ROOT / folder, each) for folder in FOLDERS)
    ]


def _is_module(folder: Path, name: str) -> bool:
    path = folder / name.replace(".", "/")
    return path.with_suffix(".py").exists() or (path / "__main__.py").exists()


def test_targets_are_phony() -> None:
    """`make benchmarks` did nothing once, for there is a folder of that name."""
    targets = targets_of(MAKEFILE)
    declared = re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)
    assert declared is not None

    assert "test" in targets
    assert set(declared[1].split()) == targets


@pytest.mark.parametrize("path", [*WORKFLOWS, ROOT / ".ci" / "run"], ids=lambda path: path.name)
def test_what_workflows_call_is_there(path: Path) -> None:
    """A release is rare: a target that was renamed would be missed on the day of the tag."""
    text = path.read_text(encoding="utf-8")
    called = list(scripts(text)) if path.suffix == ".yml" else [text]

    assert [each for script in called for each in strangers(script, MAKEFILE)] == []


def test_the_release_is_made_by_targets() -> None:
    """Else the test above would find nothing to compare."""
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    calls = {call for script in scripts(text) for call in calls_of_make(script)}

    assert calls == {
        *(("target", name) for name in ("release", "setup", "image", "site")),
        *(("variable", name) for name in ("VERSION", "ARGS", "IMAGE", "CONTENT")),
    }


def test_what_is_not_there_is_found() -> None:
    """A target, a variable and a module; comments, conditions and other programs' words are no targets."""
    script = 'make release SPEED=2 VERSION="1 2" # now\nmake gone || make test\npython -m release.gone\n'

    assert strangers(script, "release:\n\tx $(VERSION)\ntest:\n") == [
        "variable SPEED",
        "target gone",
        "module release.gone",
    ]


def test_each_benchmark_is_described() -> None:
    """A command that measures has a row on the page that says how to measure."""
    page = (ROOT / "docs" / "benchmarking.md").read_text()
    described = set(re.findall(r"^\| `make (bench[a-z0-9-]*)", page, re.MULTILINE))
    assert described == {each for each in targets_of(MAKEFILE) if re.match(r"bench(-|$)", each)}
