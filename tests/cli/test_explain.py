"""``plimsoll explain``: reasons of pending pods, of pods that stay, and of nodes that cannot be emptied."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli.commands import say
from cli.explain_scene import alone, saved
from cli.golden_files import check
from cli.planning_scenes import a_rebalancing, a_record_document, crowded, past, scheduled
from cli.planning_scenes import saved as moves_saved
from inspection.contents import a_node_document, a_pod_document, a_policy_document, content_of
from plimsoll.snapshots.file import save

FORMS = ("table", "wide", "json", "yaml")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The snapshot."""
    return saved(tmp_path_factory.mktemp("explain"))


def answer(shop: str, *words: str) -> dict[str, Any]:
    """The answer as JSON."""
    said = say("explain", *words, "-o", "json", "--from", shop)
    assert (said.code, said.err) == (0, "")
    content: dict[str, Any] = json.loads(said.out)
    return content


@pytest.mark.parametrize("pod", ["big", "gated", "lost", "urgent", "fits", "train-1", "web-2", "db-1"])
@pytest.mark.parametrize("form", FORMS)
def test_pods(shop: str, pod: str, form: str) -> None:
    """Each pod in each format."""
    said = say("explain", "pod", f"shop/{pod}", "-o", form, "--from", shop)

    assert (said.code, said.err) == (0, "")
    check("explain-pod", pod, form, said.out)


@pytest.mark.parametrize("node", ["node-1", "node-2", "node-4"])
@pytest.mark.parametrize("form", FORMS)
def test_nodes(shop: str, node: str, form: str) -> None:
    """Each node in each format."""
    said = say("explain", "node", node, "-o", form, "--from", shop)

    assert (said.code, said.err) == (0, "")
    check("explain-node", node, form, said.out)


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("no-such-pod", ("pod", "shop/bog")),
        ("other-namespace", ("pod", "big")),
        ("nothing-alike", ("pod", "shop/zzzzzzzz")),
        ("no-such-node", ("node", "node-7")),
        ("no-name", ("pod", "shop/")),
        ("a-file-and-an-operator", ("pod", "shop/big", "--operator", "http://127.0.0.1:1")),
        ("two-namespaces", ("pod", "shop/big", "-n", "default")),
    ],
)
def test_errors(shop: str, case: str, words: tuple[str, ...]) -> None:
    """One line that names what was meant."""
    said = say("explain", *words, "--from", shop)

    assert (said.code, said.out) == (1, "")
    check("explain", case, "error", said.err)


def test_a_pod_by_its_name_and_namespace(shop: str) -> None:
    """As kubectl has it."""
    assert (
        say("explain", "pod", "big", "-n", "shop", "--from", shop).out
        == say("explain", "pod", "shop/big", "--from", shop).out
    )


def test_the_nearest_miss_is_what_the_first_help_grants(shop: str) -> None:
    """Cpu on the node that has most of it free; or one pod moved."""
    pending = answer(shop, "pod", "shop/big")["pending"]

    assert pending["nearest"][0]["text"] == "node-1 lacks 600m cpu"
    assert pending["helps"][0] == {"kind": "Grant", "text": "600m of cpu freed on node-1", "node": "node-1"}
    assert [each["kind"] for each in pending["helps"]] == ["Grant", "Grant", "Grant", "Move", "AddNode"]


def test_a_pod_of_higher_priority_would_preempt(shop: str) -> None:
    """Its victims are named."""
    preemption = answer(shop, "pod", "shop/urgent")["pending"]["preemption"]

    assert preemption == {"node": "node-1", "victims": ["shop/web-1"], "message": ""}


def test_a_pod_that_was_moved_settles(shop: str) -> None:
    """Its past move and the rest of the hour are shown."""
    placed = answer(shop, "pod", "shop/web-2")["placed"]

    assert [each["sourceNode"] for each in placed["past"]] == ["node-2"]
    assert "MovedRecently" in [each["reason"] for each in placed["policies"][0]["holds"]]


def test_a_budget_that_allows_nothing_blocks_a_drain(shop: str) -> None:
    """The pod is named, with the budget."""
    node = answer(shop, "node", "node-2")

    assert not node["canDrain"]
    assert (node["pods"][0]["pod"], node["pods"][0]["outcome"]) == ("shop/db-1", "Blocked")


def test_the_page_shows_what_is_printed(shop: str) -> None:
    """The output on docs/cli/explain.md is the beginning of this."""
    page = (Path(__file__).parents[2] / "docs" / "cli" / "explain.md").read_text(encoding="utf-8")
    shown = page.partition("```text\nPod shop/big")[2].partition("```")[0]

    assert shown
    assert say("explain", "pod", "shop/big", "--from", shop).out.startswith(f"Pod shop/big{shown}")


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("pod/big", "-n", "shop"), ("pod", "shop/big")),
        (("-n", "shop", "po", "big"), ("pod", "shop/big")),
        (("pods/shop/big",), ("pod", "shop/big")),
        (("no/node-1",), ("node", "node-1")),
    ],
)
def test_kinds_are_written_as_for_kubectl(shop: str, words: tuple[str, ...], meant: tuple[str, ...]) -> None:
    """Short, plural, or before a slash as ``kubectl get -o name`` prints them."""
    said = say("explain", *words, "--from", shop)

    assert (said.code, said.err) == (0, "")
    assert said.out == say("explain", *meant, "--from", shop).out


@pytest.fixture(scope="module")
def moves(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Records of moves of every outcome, and a pod of their owner."""
    folder = tmp_path_factory.mktemp("moves")
    approved = a_record_document("web-f", "Evicted", minutes_ago=1, took=5, mode="Approve")
    return str(folder / moves_saved(folder, *crowded(), *past(), approved))


@pytest.mark.parametrize("pod", ["web-z", "web-a-next", "web-d-next", "web-f", "db-z", "web-zz"])
@pytest.mark.parametrize("form", ["table", "json"])
def test_pods_that_are_gone_are_explained_by_records(moves: str, pod: str, form: str) -> None:
    """By the old name, a name between two moves, one of a dry run, one under way, and by the owner."""
    said = say("explain", "pod", f"shop/{pod}", "-o", form, "--from", moves)

    assert (said.code, said.err) == (0, "")
    check("explain-gone", pod, form, said.out)


@pytest.mark.parametrize("record", ["web-b", "db-a", "db-b", "web-c", "web-d"])
def test_moves_are_explained_by_their_records(moves: str, record: str) -> None:
    """As it returned, was blocked, failed, waits, and was predicted."""
    said = say("explain", "plev", f"shop/{record}-0123abcd", "--from", moves)

    assert (said.code, said.err) == (0, "")
    check("explain-eviction", record, "table", said.out)


def test_a_record_that_is_not_there_is_an_error_with_names_like_it(moves: str) -> None:
    said = say("explain", "eviction", "shop/web-b-0123abce", "--from", moves)

    assert said.code == 1
    assert said.err.startswith(
        'error: eviction "shop/web-b-0123abce" not found; did you mean shop/web-b-0123abcd'
    )


def test_a_policy_whose_scope_excludes_the_pod_says_so_first(tmp_path: Path) -> None:
    """Before what others and its node have to say."""
    excluded = a_policy_document(
        "rebalance",
        scope={"namespaces": {"exclude": ["shop"]}},
        rebalancing=a_rebalancing("RemoveDuplicates"),
    )
    shop = str(tmp_path / moves_saved(tmp_path, *crowded(), scheduled(), excluded))

    answered = answer(shop, "pod", "shop/web-a")

    text = "policy rebalance (Enforce): leaves it alone: namespace shop is out of the policy's scope"
    assert answered["summary"][0] == text
    assert [each["outcome"] for each in answered["placed"]["policies"]] == ["OutOfScope"]


def test_a_node_with_many_pods_lists_those_first_that_stop_a_drain(tmp_path: Path) -> None:
    """Twenty of them, with how many there are; -o wide lists all."""
    pods = [a_pod_document(f"web-{each:02}", "node-1", cpu="10m") for each in range(25)]
    last = alone(a_pod_document("zz-alone", "node-1", cpu="10m"))
    file = tmp_path / "many.json.gz"
    save(content_of([a_node_document("node-1"), a_node_document("node-2"), *pods, last]), file)

    short = say("explain", "node", "node-1", "--from", str(file)).out.splitlines()
    whole = say("explain", "node", "node-1", "--from", str(file), "-o", "wide").out

    title = short.index("20 of 26 pods; -o wide lists all:")
    assert short[title + 2].startswith("shop/zz-alone   Blocked")
    assert [*short, ""].index("", title) == title + 22
    assert whole.count("shop/web-") == 25
