"""plimsoll fit as users see it: output of each format, errors, and its page."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.commands import say
from cli.executed_page import check_page
from cli.golden_files import check
from cli.loaded_cluster import write_dump
from plimsoll.cli.tables import Table
from plimsoll.cli.views.fit import fit_view
from plimsoll.inspection.placement.fit import FitAnswer, NodeShare, WorkloadFit

DEPLOYMENT = str(Path(__file__).with_name("deployment.yaml"))


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The cluster as a file."""
    return write_dump(tmp_path_factory.mktemp("fit") / "cluster.json")


@pytest.mark.parametrize("form", ["table", "wide", "json", "yaml"])
@pytest.mark.parametrize(
    ("case", "flags", "code"),
    [("all-fit", ["--replicas", "1"], 0), ("not-all", [], 2), ("most", ["--max", "--alone"], 0)],
)
def test_answers_look_like_this(dump: str, form: str, case: str, flags: list[str], code: int) -> None:
    said = say("fit", "-f", DEPLOYMENT, *flags, "--from", dump, "-o", form)

    assert (said.code, said.err) == (code, "")
    check("fit", case, form, said.out)


def test_of_many_nodes_the_first_are_shown() -> None:
    """An answer fits on a screen; -o wide has them all."""
    nodes = [NodeShare(node=f"node-{number:02}", pods=1) for number in range(60)]
    workload = WorkloadFit.model_construct(
        workload="Deployment shop/cart",
        placed=60,
        wanted=None,
        nodes=nodes,
        scheduler="plimsoll",
        policy="tidy",
        priority=0,
        ties=0,
        domains=[],
        victims=[],
        obstacle=None,
        limited=False,
    )
    answer = FitAnswer.model_construct(fits=True, workloads=[workload], waiting=0, waiting_placed=0, notes=[])

    shown, whole = (
        [each for each in fit_view(answer, wide=wide) if isinstance(each, Table)][-1]
        for wide in (False, True)
    )
    assert (len(shown.rows), shown.title) == (20, "The first 20 of 60; -o wide lists all:")
    assert len(whole.rows) == 60


@pytest.mark.parametrize(
    ("case", "manifest", "flags"),
    [
        ("both", None, ["--max", "--replicas", "3"]),
        ("no-yaml", "a: b: c", []),
        ("no-kind", "a: b", []),
        ("no-workload", "kind: ConfigMap\nmetadata: {name: x}", []),
        ("no-containers", "kind: Pod\nmetadata: {name: x}\nspec: {}", []),
        (
            "wrong-type",
            "kind: Pod\nmetadata: {name: x}\nspec: {containers: [{resources: {requests: 7}}]}",
            [],
        ),
        ("hostile", "kind: Pod\nmetadata: {name: x}\nspec: {containers: &a [*a]}", []),
    ],
)
def test_errors_are_one_line(
    dump: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    case: str,
    manifest: str | None,
    flags: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("given.yaml").write_text(manifest or "", encoding="utf-8")

    said = say("fit", "-f", DEPLOYMENT if manifest is None else "given.yaml", *flags, "--from", dump)

    assert (said.code, said.out, said.err.count("\n")) == (1, "", 1)
    check("fit", case, "error", said.err)


def test_the_page_says_what_it_prints(dump: str, tmp_path: Path) -> None:
    assert check_page("fit.md", dump, tmp_path) == 2
