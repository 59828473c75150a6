""".github/: does what .ci/run does, on each Python, and is taken by a linter of workflows."""

from __future__ import annotations

import re
import subprocess

import yaml

from deploy.tools import ROOT, tool
from release import krew

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
TEXT = "\n".join(path.read_text(encoding="utf-8") for path in WORKFLOWS)

#: The commits of these tags in the repositories of the actions.
COMMITS = {
    "actions/attest-build-provenance v4.1.0": "a2bbfa25375fe432b6a289bc6b6cd05ecd0c4c32",
    "actions/checkout v5.0.0": "08c6903cd8c0fde910a37f88322edcfb5dd907a8",
    "actions/download-artifact v4.3.0": "d3f86a106a0bac45b974a628896c90dbdf5c8093",
    "actions/setup-python v5.6.0": "a26af69be951a213d495a4c3e4e4022e16d87065",
    "actions/upload-artifact v4.6.2": "ea165f8d65b6e75b540449e92b4886f43607fa02",
    "helm/kind-action v1.12.0": "a1b0e391336a6ee6713a0583f8c6240d70863de3",
    "oras-project/setup-oras v1.2.4": "22ce207df3b08e061f537244349aac6ae1d214f6",
    "sigstore/cosign-installer v3.9.2": "d58896d6a1865668819e1d91763c7751a165e159",
}


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


def test_actions_are_pinned_to_the_commits_of_their_tags() -> None:
    """A commit that does not exist fails on the day of a release; another tag's does other work."""
    pins = {f"{name} {tag}": commit for name, commit, tag in re.findall(r"uses: (\S+)@(\S+) # (\S+)", TEXT)}

    assert pins == COMMITS


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


def test_the_archive_for_krew_is_made_of_an_image_with_the_command_line() -> None:
    """As in a dry run, which ``make release-check`` installs; the operator's image has no commands."""
    (content, tag) = re.findall(
        r'make image IMAGE=plimsoll-kubectl CONTENT="(.+)"\n.*docker create (\S+)\)"', TEXT
    )[0]

    assert (content, tag) == (krew.CONTENT, "plimsoll-kubectl")


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
