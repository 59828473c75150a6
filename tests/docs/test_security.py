"""Every claim of SECURITY.md names existing tests."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "SECURITY.md").read_text(encoding="utf-8")

#: Claims that are advice, or about what others do.
ADVICE = {"Queues:"}


def test_every_claim_names_its_tests() -> None:
    """A claim begins with what is tried or what holds."""
    claims = re.findall(r"^- (.*?)(?=\n- |\n\n|\Z)", TEXT, re.MULTILINE | re.DOTALL)
    bare = {re.match(r"\*\*(.*?)\*\*", claim)[1] for claim in claims if ".py::test_" not in claim}  # type: ignore[index] # known to exist in this test

    assert len(claims) > 20
    assert bare == ADVICE


def test_the_threat_model_says_of_each_what_it_costs_and_which_tests_hold_that() -> None:
    """Of everybody who may write something that the operator reads."""
    table = TEXT.partition("## Threat model")[2].partition("\n## ")[0]
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if line[:1] == "|"
    ]
    _, _, *lines = rows

    assert {who: tests for who, _, tests in lines if "::test_" not in tests} == {}
    assert [who for who, costs, _ in lines if not costs] == []
    words = (
        "identity",
        "`edit`",
        "everything",
        "node",
        "extender",
        "webhook",
        "metrics",
        "plugin",
        "policies",
    )
    assert [word for word in words if not any(word in who for who, *_ in lines)] == []


def test_every_test_that_is_named_exists() -> None:
    """Under that name, in that file."""
    named = re.findall(r"`((?:devcluster/)?tests/[\w/]+\.py)::(?:\w+::)?(test_\w+)`", TEXT)
    missing = [
        f"{path}::{name}"
        for path, name in named
        if not re.search(
            rf"^ *(?:async )?def {name}\(", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE
        )
    ]

    assert missing == []
    assert len(named) == TEXT.count("::test_")
