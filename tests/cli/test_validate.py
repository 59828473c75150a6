"""plimsoll validate says of files what the status of their policies would say."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.commands import say
from cli.golden_files import check

ROOT = Path(__file__).parents[2]
POLICIES = """\
apiVersion: plimsoll.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: day}
spec:
  scheduling: {schedulerName: plimsoll}
  rebalancing: {mode: Enforce, strategies: [{name: RemoveDuplicates}]}
---
apiVersion: plimsoll.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: second}
spec:
  scheduling: {schedulerName: plimsoll}
---
apiVersion: plimsoll.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: older, creationTimestamp: 2026-01-31T12:00:00Z}
spec:
  scheduling:
    schedulerName: older
    pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAlocated}}}]
---
apiVersion: plimsoll.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: strays}
spec:
  rebalancin: {}
  rebalancing: {strategies: [{name: PodLifeTime, args: {states: [Pending]}}], limits: {totl: 1}}
---
apiVersion: plimsoll.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: args}
spec:
  rebalancing: {strategies: [{name: PodLifeTime, args: {stats: 2026-01-31}}]}
---
apiVersion: plimsoll.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: day}
spec: {}
---
apiVersion: plimsoll.dev/v1
kind: SchedulingPolicy
metadata: {name: tomorrow}
spec: {}
---
apiVersion: plimsoll.dev/v1alpha1
kind: PodGroup
metadata: {name: ring, namespace: ml}
spec: {minMember: 0}
"""
OTHERS = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
---
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
---
apiVersion: plimsoll.dev/v1alpha1
kind: Schedule
metadata: {name: web}
---
metadata: {name: nothing}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The present folder, with files of all sorts."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policies.yaml").write_text(POLICIES, encoding="utf-8")
    (tmp_path / "others").mkdir()
    (tmp_path / "others/all.yaml").write_text(OTHERS, encoding="utf-8")
    (tmp_path / "others/broken.json").write_text('{"kind": ', encoding="utf-8")
    (tmp_path / "others/notes.txt").write_text("no manifest", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("form", ["table", "wide", "json", "yaml"])
def test_it_says_of_each_document_what_the_status_would(folder: Path, form: str) -> None:
    """In one line, with the exact field; other kinds are skipped."""
    said = say("validate", "policies.yaml", "others", "absent.yaml", "-o", form)

    assert said.code == 1
    check("validate", "everything", form, said.out)


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "examples").glob("*.yaml")))
def test_the_examples_are_accepted(name: str) -> None:
    """Each by itself."""
    said = say("validate", str(ROOT / "examples" / name))

    assert said.code == 0
    assert said.out.splitlines()[0].endswith(" accepted, 0 refused, 0 skipped")


def test_a_folder_without_manifests_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was judged."""
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()

    said = say("validate", "empty")

    assert said.code == 1
    check("validate", "empty-folder", "error", said.err)


@pytest.mark.parametrize("command", ["validate", "convert"])
def test_files_may_be_named_as_for_kubectl_apply(folder: Path, command: str) -> None:
    """By -f; without any the error says what to write."""
    named, plain = say(command, "-f", "others/all.yaml"), say(command, "others/all.yaml")

    assert named == plain
    assert say(command).err == f"error: no file is named; write plimsoll {command} FILE\n"
