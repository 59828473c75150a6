""".github/: does what .ci/run does, on each Python, and is taken by a linter of workflows."""

from __future__ import annotations

import re
import subprocess

import yaml

from deploy.tools import ROOT, tool

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
TEXT = "\n".join(path.read_text(encoding="utf-8") for path in WORKFLOWS)


def linted(*arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    """What jactionlint says."""
    command = [tool("jactionlint"), "--shellcheck=", *arguments]
    return subprocess.run(command, cwd=ROOT, input=given, capture_output=True, text=True, check=False)


def test_the_linter_finds_nothing() -> None:
    """Neither in what it means nor in what it lets others do; and it does find what is wrong."""
    done = linted(*map(str, WORKFLOWS))
    assert done.returncode == 0, done.stdout

    assert linted("-", given=TEXT.replace("matrix.python }}", "matrix.pyhton }}")).returncode != 0
    assert linted("-", given=re.sub(r"@[0-9a-f]{40}", "@main", TEXT)).returncode != 0


def test_every_target_that_is_called_exists() -> None:
    """The Makefile is the one door."""
    targets = set(
        re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    )
    called = {
        word
        for line in re.findall(r"\bmake ([^\n]+)", TEXT)
        for word in line.split()
        if re.fullmatch(r"[a-z0-9-]+", word)
    }

    assert called
    assert called <= targets


def test_each_supported_python_runs_what_ci_runs() -> None:
    """From the oldest that the package takes; with .ci/run itself."""
    (job,) = [
        job
        for path in WORKFLOWS
        for job in yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values()
        if any(step.get("run") == ".ci/run" for step in job["steps"])
    ]
    versions = job["strategy"]["matrix"]["python"]
    (oldest,) = re.findall(
        r'requires-python = ">=([\d.]+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    )

    assert versions == [oldest, "3.12", "3.13"]
