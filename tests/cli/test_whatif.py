"""plimsoll whatif as users see it: output of each format, errors, the order of its flags, and its page."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from cli.commands import say
from cli.executed_page import check_page
from cli.explain_scene import alone
from cli.golden_files import check
from cli.loaded_cluster import write_dump
from cli.planning_scenes import crowded, saved, scheduled
from inspection.contents import a_pod_document, a_policy_document

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
        ("a-number-for-a-name", ["--add-node", "3"]),
        ("a-number-for-a-name-with-a-model", ["--add-node", "3=node-1"]),
        ("a-name-for-a-number", ["--add-nodes", "node-9"]),
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

    title = "Has no place then (20 of "
    assert title in folded
    assert "; -o wide lists all):" in folded
    assert title not in whole
    assert len(whole.splitlines()) > len(folded.splitlines())


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two pods that wait: a bare one that would fit everywhere, and one of a scheduler that nothing runs."""
    bare = alone(a_pod_document("bare", cpu="500m"))
    lost = alone(a_pod_document("lost", cpu="500m", schedulerName="plimsol"))
    folder = tmp_path_factory.mktemp("waiting")
    return str(folder / saved(folder, *crowded(), bare, lost, scheduled()))


def answer_of(*words: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(say("whatif", *words, "-o", "json").out)
    return answer


@pytest.mark.parametrize("flag", ["--drain", "--remove-node"])
def test_pods_that_wait_hold_no_node_that_goes(waiting: str, flag: str) -> None:
    """Where the first change would put it, it blocks no later one, and is not among the pods that end."""
    once = answer_of("--drain", "new-1", "--from", waiting)
    again = answer_of("--drain", "new-1", flag, "new-2", "--from", waiting)

    assert (once["fitting"], once["stillPending"], once["blocked"]) == (1, 1, [])
    assert once["summary"] == "new-1 can be drained: no pod has to move"
    assert {each["node"]: each["before"]["pods"] for each in once["nodes"]} == {"new-2": 0}
    assert again["blocked"] == []
    assert again["gone"] == []
    assert {each["node"] for each in again["nodes"] if "after" in each} == {"old"}


def test_what_is_before_is_the_cluster_as_it_is(waiting: str) -> None:
    """The sums have no pod that waits, and what policies move now is what plan says."""
    found = answer_of("--cordon", "new-1", "--from", waiting)
    planned = json.loads(say("plan", "--from", waiting, "-o", "json").out)

    assert found["totalBefore"]["pods"] == 5
    assert found["totalAfter"]["pods"] == 6
    moves = [each["pod"] for policy in planned["policies"] for each in policy["moves"]]
    assert [each["pod"] for policy in found["policies"] for each in policy["before"]] == moves


def test_pods_of_an_unserved_scheduler_get_no_place_until_a_policy_serves_them(
    waiting: str, tmp_path: Path
) -> None:
    file = tmp_path / "policy.json"
    file.write_text(json.dumps(a_policy_document("more", scheduling={"schedulerName": "plimsol"})))

    grown = answer_of("--add-nodes", "2=new-1", "--from", waiting)
    served = answer_of("-f", str(file), "--from", waiting)

    assert (grown["released"], grown["stillPending"]) == ([], 1)
    assert [each["pod"] for each in served["released"]] == ["shop/lost"]


def test_nodes_are_added_by_number_and_copy_none_that_was_added(dump: str) -> None:
    """Not even where the added ones are the most common kind."""
    many = answer_of("--add-nodes", "9=node-3", "--add-nodes", "2", "--from", dump)

    assert len([each for each in many["nodes"] if "before" not in each]) == 11
    assert many["notes"][0] == "new-10 to new-11 are copies of node-1, one of the most common nodes"
