"""plimsoll whatif as users see it: output of each format, errors, the order of its flags, and its page."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from cli.commands import say
from cli.executed_page import check_page
from cli.golden_files import check
from cli.loaded_cluster import write_dump
from inspection.contents import a_policy_document

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The cluster as a file."""
    return write_dump(tmp_path_factory.mktemp("whatif") / "cluster.json")


@pytest.mark.parametrize("form", ["table", "wide", "json", "yaml"])
@pytest.mark.parametrize(
    ("case", "flags", "code"),
    [
        ("drain", ["--drain", "node-3,node-1"], 2),
        ("grow", ["--add-node", "node-9=node-1", "--add-node", "node-8"], 0),
        ("remove", ["--remove-node", "node-1", "--taint", "node-4", "gpu:NoSchedule-"], 0),
    ],
)
def test_answers_look_like_this(dump: str, form: str, case: str, flags: list[str], code: int) -> None:
    said = say("whatif", *flags, "--from", dump, "-o", form)

    assert (said.code, said.err) == (code, "")
    check("whatif", case, form, said.out)


@pytest.mark.parametrize(
    ("case", "flags"),
    [
        ("nothing", []),
        ("no-node", ["--drain", "node-7"]),
        ("no-pods", ["--scale", "shop/deploy/none=3"]),
        ("scale", ["--scale", "web"]),
        ("label", ["--label", "node-1"]),
        ("taint", ["--taint", "node-1", "a=b:Never"]),
        ("twice", ["--add-node", "node-1"]),
    ],
)
def test_errors_are_one_line(dump: str, case: str, flags: list[str]) -> None:
    said = say("whatif", *flags, "--from", dump)

    assert (said.code, said.out, said.err.count("\n")) == (1, "", 1)
    check("whatif", case, "error", said.err)


def test_flags_of_different_kinds_count_in_the_order_in_which_they_are_given(dump: str) -> None:
    """The node is there when it is labelled, and takes pods before it is cordoned or after."""
    add, cordon, scale = ["--add-node", "x=node-1"], ["--cordon", "x"], ["--scale", "shop/rs/web=4"]

    open_, closed = (
        json.loads(say("whatif", *flags, "--from", dump, "-o", "json").out)
        for flags in ([*add, *scale, *cordon], [*add, *cordon, "--label", "x", "a=b", *scale])
    )
    wrong = say("whatif", *cordon, *add, "--from", dump)

    assert "x" in {each["node"] for each in (*open_["placed"], *open_["released"])}
    assert wrong.err.startswith("error: there is no node x;")
    assert {each["node"] for each in closed["released"]} == {"x"}


def test_policies_can_be_changed(dump: str, tmp_path: Path) -> None:
    """Another one takes the place of all, or one more is applied."""
    file = tmp_path / "policy.json"
    file.write_text(json.dumps(a_policy_document("other", rebalancing={"strategies": []})))

    instead, more = (
        json.loads(say("whatif", flag, str(file), "--from", dump, "-o", "json").out)["policies"]
        for flag in ("--policies", "-f")
    )

    assert [(each["policy"], len(each["before"]), len(each["after"])) for each in instead] == [
        ("all", 1, 0),
        ("other", 0, 0),
    ]
    assert [len(each["after"]) for each in more] == [1, 0]


def test_the_page_says_what_it_prints(dump: str, tmp_path: Path) -> None:
    assert check_page("whatif.md", dump, tmp_path) == 3


def test_long_lists_end_early(dump: str) -> None:
    """The title says how many there are, and how to see them."""
    words = ("whatif", "--scale", "shop/ReplicaSet/web=40", "--from", dump)
    folded, whole = say(*words).out, say(*words, "-o", "wide").out

    title = "Becomes pending (20 of "
    assert title in folded
    assert "; -o wide lists all):" in folded
    assert title not in whole
    assert len(whole.splitlines()) > len(folded.splitlines())
