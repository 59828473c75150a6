"""``plimsoll plan`` on fixed clusters: its output in every format, its exit codes, its errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from cli import golden_files
from cli.commands import say
from cli.planning_scenes import LOW, a_rebalancing, crowded, policies, saved, scheduled
from inspection.contents import a_policy_document

if TYPE_CHECKING:
    from inspection.contents import Document

PAGES = Path(__file__).parents[2] / "docs" / "cli"
CASES = ("policies", "against")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The present folder, so that no output depends on where it is."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(folder: Path, name: str, *documents: Document) -> str:
    (folder / name).write_text(yaml.safe_dump_all(documents))
    return name


@pytest.mark.parametrize("form", ["table", "wide", "json", "yaml"])
def test_each_policy_says_what_it_would_move_and_why_not_more(folder: Path, form: str) -> None:
    """A move, refusals, utilisation, limits, a budget; and policies that would not run at all."""
    cluster = saved(folder, *crowded(), *policies())

    said = say("plan", "--from", cluster, "-o", form)

    assert (said.code, said.err) == (2, "")
    golden_files.check("plan", "policies", form, said.out)


@pytest.mark.parametrize("form", ["table", "wide", "json"])
def test_a_file_is_planned_in_place_of_the_live_policy(folder: Path, form: str) -> None:
    """The limits of the new one allow more, and the difference is shown pod by pod."""
    cluster = saved(folder, *crowded(), *policies())
    freed = {"total": 10, "perNode": "100%", "perWorkload": "100%"}
    new = written(folder, "new.yaml", scheduled(rebalancing=a_rebalancing(LOW, limits=freed)))

    said = say("plan", "-f", new, "--against", "live", "--from", cluster, "-o", form)

    assert (said.code, said.err) == (2, "")
    golden_files.check("plan", "against", form, said.out)


def test_the_same_policies_do_not_differ(folder: Path) -> None:
    """Both plans have moves, and the exit code is 0: it answers whether they differ."""
    cluster = saved(folder, *crowded(), *policies())
    same = written(folder, "same.yaml", policies()[0])

    assert say("plan", "-f", same, "--from", cluster).code == 2
    said = say("plan", "-f", same, "--against", "live", "--from", cluster)

    assert said.code == 0, said
    assert "0 only new, 0 only old, 1 both" in said.out


def test_two_files_are_compared_on_the_live_cluster(folder: Path) -> None:
    """The live policies of other names stay; what only the old file has is not in the new set."""
    cluster = saved(folder, *crowded(), scheduled())
    old = written(
        folder, "old.yaml", a_policy_document("mover", rebalancing=a_rebalancing("RemoveDuplicates"))
    )
    new = written(
        folder,
        "new.yaml",
        a_policy_document("mover", rebalancing=a_rebalancing(mode="DryRun")),
    )

    said = say("plan", "-f", new, "--against", old, "--from", cluster, "-o", "json")

    found = json.loads(said.out)
    assert said.code == 2
    assert [each["policy"] for each in found["policies"]] == ["mover"]
    assert found["comparison"]["against"] == "old.yaml"
    assert [each["policy"] for each in found["comparison"]["old"]] == ["mover"]
    assert found["comparison"]["onlyOld"] == 1


def test_without_a_move_the_exit_code_is_0(folder: Path) -> None:
    """Named policies only: the one that moves is left out."""
    cluster = saved(folder, *crowded(), *policies())

    said = say("plan", "resting", "placing", "--from", cluster)

    assert said.code == 0
    assert said.out.splitlines() == [
        "none of 2 policies would move a pod now",
        "",
        "placing: moves no pods: it has no spec.rebalancing",
        "",
        "resting: suspended: the operator does not run it while spec.suspend is true",
    ]


def test_a_stop_button_is_named(folder: Path) -> None:
    """Nothing would move, and the first line says why."""
    stop = {"name": "plimsoll", "uid": "ns", "annotations": {"plimsoll.dev/stop": "true"}}
    cluster = saved(folder, *crowded(), *policies(), {"kind": "Namespace", "metadata": stop})

    said = say("plan", "tidy", "--from", cluster)

    assert said.code == 0
    assert 'all moves are stopped: namespace plimsoll is annotated plimsoll.dev/stop="true"' in said.out
    assert "Stopped" in said.out


@pytest.mark.parametrize(
    ("case", "words"),
    [
        pytest.param("unknown-policy", ("plan", "tidi", "--from", "cluster.plimsoll"), id="unknown-policy"),
        pytest.param("refused", ("plan", "-f", "bad.yaml", "--from", "cluster.plimsoll"), id="refused"),
        pytest.param("no-policy", ("plan", "-f", "pod.yaml", "--from", "cluster.plimsoll"), id="no-policy"),
        pytest.param("no-file", ("plan", "-f", "gone.yaml", "--from", "cluster.plimsoll"), id="no-file"),
        pytest.param(
            "no-old-file", ("plan", "--against", "gone.yaml", "--from", "cluster.plimsoll"), id="no-old-file"
        ),
        pytest.param("no-snapshot", ("plan", "--from", "gone.plimsoll"), id="no-snapshot"),
    ],
)
def test_errors_are_one_line(folder: Path, case: str, words: tuple[str, ...]) -> None:
    """What, where, what is allowed."""
    saved(folder, *crowded(), *policies())
    written(folder, "bad.yaml", policies()[3])
    written(folder, "pod.yaml", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}})

    said = say(*words)

    assert (said.code, said.out) == (1, "")
    assert said.err.count("\n") == 1
    golden_files.check("plan", case, "error", said.err)


def test_the_page_shows_what_the_command_prints() -> None:
    """docs/cli/plan.md has the plan of the policy that moves a pod, and the comparison."""
    page = (PAGES / "plan.md").read_text()
    policies, against = ((golden_files.GOLDEN / "plan" / f"{case}.table").read_text() for case in CASES)

    moving = policies[policies.index("\ntidy:") + 1 : policies.index("\nwatched:")]
    assert f"```text\n{moving.rstrip()}\n```" in page
    assert f"```text\n{against.rstrip()}\n```" in page
