"""``plimsoll history`` on fixed records: its output in every format, its filters, its errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli import golden_files
from cli.commands import say
from cli.planning_scenes import a_record_document, past, saved

PAGES = Path(__file__).parents[2] / "docs" / "cli"


@pytest.fixture(autouse=True)
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A snapshot with past moves, in the present folder."""
    monkeypatch.chdir(tmp_path)
    return saved(tmp_path, *past())


@pytest.mark.parametrize("form", ["table", "wide", "json", "yaml"])
def test_moves_of_a_day(cluster: str, form: str) -> None:
    """The moves, what ended badly and why, what moved again, the owners, and a digest."""
    said = say("history", "--from", cluster, "-o", form)

    assert (said.code, said.err) == (0, "")
    golden_files.check("history", "day", form, said.out)


def test_the_audit_log_is_read_as_records_are(tmp_path: Path) -> None:
    """Also a line that is there twice, and a name that was used for another move later."""
    records = [each for each in past() if each["kind"] == "Eviction"]
    lines = [an_audited_line(each) for each in records]
    later = {**lines[0], "uid": "another"}
    text = "\n".join(json.dumps(each) for each in (*lines, lines[0], later))
    (tmp_path / "audit.jsonl").write_text(text + "\n", encoding="utf-8")

    said = say("history", "--from", "audit.jsonl", "--since", "2026-01-01T00:00:00Z", "-o", "json")

    moves = json.loads(said.out)["moves"]
    done = [each for each in records if each["spec"]["mode"] != "DryRun"]
    assert said.err == ""
    assert len(moves) == len(done) + 1
    assert sum(each["record"].endswith(".another") for each in moves) == 1


def test_a_line_of_an_audit_log_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    line = {"apiVersion": "plimsoll.dev/v1alpha1", "kind": "AuditedEviction", "name": "x"}
    (tmp_path / "audit.jsonl").write_text(json.dumps(line), encoding="utf-8")

    said = say("history", "--from", "audit.jsonl")

    assert said.code == 1
    assert "a line of the audit log cannot be read" in said.err


def an_audited_line(record: dict[str, Any]) -> dict[str, Any]:
    """The line of a record."""
    meta = record["metadata"]
    named = {"name": meta["name"], "namespace": meta["namespace"], "uid": f"uid-{meta['name']}"}
    return {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "AuditedEviction",
        **named,
        "created": meta["creationTimestamp"],
        "spec": record["spec"],
        "status": record["status"],
    }


@pytest.mark.parametrize(
    ("words", "pods"),
    [
        pytest.param(("--since", "72h"), 7, id="since"),
        pytest.param(("--since", "2026-01-31T10:15:00Z"), 4, id="since-a-time"),
        pytest.param(("--until", "95m"), 3, id="until"),
        pytest.param(("-n", "bank"), 0, id="namespace"),
        pytest.param(("-n", "shop", "-A"), 6, id="all-namespaces"),
        pytest.param(("--policy", "tidy"), 6, id="policy"),
        pytest.param(("--policy", "other"), 0, id="another-policy"),
        pytest.param(("-l", "plimsoll.dev/owner-name=db"), 2, id="labels"),
        pytest.param(("web-a",), 1, id="old-name"),
        pytest.param(("shop/web-a-next",), 2, id="new-name-that-was-moved-too"),
        pytest.param(("web-z",), 1, id="a-named-pod-moved-long-ago"),
        pytest.param(("web-z", "--since", "24h"), 0, id="a-named-pod-and-a-time"),
        pytest.param(("rs/db",), 2, id="owner"),
        pytest.param(("bank/rs/db",), 0, id="owner-elsewhere"),
        pytest.param(("bank/web-a",), 0, id="pod-elsewhere"),
    ],
)
def test_moves_are_selected(cluster: str, words: tuple[str, ...], pods: int) -> None:
    said = say("history", "--from", cluster, "-o", "json", *words)

    assert len(json.loads(said.out)["moves"]) == pods


def test_no_moves_is_said_with_the_time(cluster: str) -> None:
    """A dry run is no move."""
    said = say("history", "--from", cluster, "--policy", "watched")

    assert said.out == "no moves since 2026-01-30T12:00:00Z; 1 record of dry runs moved nothing\n"


def test_no_moves_in_a_namespace_says_where_to_look(cluster: str) -> None:
    said = say("history", "--from", cluster, "-n", "bank")

    assert said.out == "no moves in namespace bank since 2026-01-30T12:00:00Z; -A looks in all namespaces\n"


@pytest.mark.parametrize(
    ("case", "words"),
    [
        pytest.param("since", ("--since", "yesterday"), id="since"),
        pytest.param("again", ("--again-within", "1d"), id="again"),
        pytest.param("no-subject", ("shop/rs/",), id="no-subject"),
        pytest.param("two-namespaces", ("shop/web-a", "-n", "bank"), id="two-namespaces"),
        pytest.param("selector", ("-l", "a in (", "--since", "1h"), id="selector"),
        pytest.param("no-snapshot", ("--from", "gone.plimsoll"), id="no-snapshot"),
    ],
)
def test_errors_are_one_line(cluster: str, case: str, words: tuple[str, ...]) -> None:
    given = words if "--from" in words else (*words, "--from", cluster)

    said = say("history", *given)

    assert (said.code, said.out) == (1, "")
    assert said.err.count("\n") == 1
    golden_files.check("history", case, "error", said.err)


def test_the_page_shows_what_the_command_prints() -> None:
    """docs/cli/history.md has the moves of a day."""
    page = (PAGES / "history.md").read_text()
    day = (golden_files.GOLDEN / "history" / "day.table").read_text()

    assert f"```text\n{day.rstrip()}\n```" in page


def test_a_move_took_from_its_approval_on(tmp_path: Path) -> None:
    """Not from its plan, which waited for half an hour; rejected, it took no time."""
    waited = a_record_document("web-a", "Settled", minutes_ago=60, took=1830, mode="Approve")
    waited["status"]["transitions"].insert(1, {"phase": "Evicting", "time": "2026-01-31T11:30:00Z"})
    rejected = a_record_document("web-b", "Cancelled", minutes_ago=60, took=1830, mode="Approve")

    said = say("history", "--from", saved(tmp_path, waited, rejected), "-o", "json")

    answer = json.loads(said.out)
    assert [each["seconds"] for each in answer["moves"]] == [30.0, 0.0]
    assert answer["digest"][0]["p95Seconds"] == 30.0
    table = say("history", "--from", saved(tmp_path, waited, rejected)).out
    assert "\n1 move waited 30m for approval; TOOK counts from then on\n" in table
