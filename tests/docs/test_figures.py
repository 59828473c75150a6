"""Numbers that pages state as limits are those of the code.

A row has the words of the page and the values behind them, in order. Each number of a page outside of code
belongs to a row, or was measured, or limits nothing; so a new one needs a row, and one that changes fails.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import settings

from commit_message import LONGEST
from costs import DEAREST
from e2e.polls import PATIENCE_S as EVENTUALLY_S
from plimsoll.app.endpoints import PAGES, PROBES
from plimsoll.app.machine.connections import SENT
from plimsoll.app.machine.garbage import TRIM_S
from plimsoll.app.memory.caller_gate import REVIEWS, REVIEWS_PER_S
from plimsoll.cluster.listed_objects import MOST_ANNOTATIONS
from plimsoll.devices import cel
from plimsoll.engine.plugin_calls import BUDGET_S, GANG_BUDGET_S
from plimsoll.kube.session.response_parser import BODY_BYTES, FRAMING_BYTES
from plimsoll.leadership.election import Terms
from plimsoll.model.heavy_objects import HEAVY_BYTES
from plimsoll.planning.moves import SCORE_GAIN
from plimsoll.planning.planners import LASTS_S
from plimsoll.planning.strategy_run import PLAN_BUDGET_S
from plimsoll.policies.rebalancing_rules import MOST_RULES
from plimsoll.rebalancing.moves.outcomes import PATIENCE_S
from plimsoll_optimal.spread_repair import MOST_S
from website.judged import PAGES as JUDGED

ROOT = Path(__file__).parents[2]
MAKE = (ROOT / "Makefile").read_text(encoding="utf-8")

#: Numbers as words; "one" and "a" do not count.
WORDS = {
    **dict(
        zip(
            ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
            range(2, 11),
            strict=True,
        )
    ),
    "sixteen": 16,
    "fifteen": 15,
    "eighteen": 18,
    "twenty": 20,
    "thirty": 30,
    "forty": 40,
    "thousand": 1000,
}
NUMBER = re.compile(rf"(?<![\w.-])(\d[\d,]*(?:\.\d+)?|{'|'.join(WORDS)})(?![\w-])")


class Figure(NamedTuple):
    """Words of a page, and the values of the numbers in them."""

    page: str
    words: str
    values: tuple[float, ...]


def option(name: str, text: str) -> int:
    """The value of an option in a file that starts a program."""
    found = re.search(rf"{name}[ =]\"?(\d+)", text)
    assert found is not None
    return int(found[1])


MUTANTS = (ROOT / ".github/workflows/mutants.yml").read_text(encoding="utf-8")
SECOND_TIME = json.loads((ROOT / "tools/planter/second_time.json").read_text(encoding="utf-8"))
PLANTER = (ROOT / "tools/planter/__main__.py").read_text(encoding="utf-8")
PYPROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")

SECURITY, CONTRIBUTING, REBALANCING = "SECURITY.md", "CONTRIBUTING.md", "docs/rebalancing.md"

FIGURES = (
    Figure(SECURITY, "moves no pod of others for five minutes", (LASTS_S / 60,)),
    Figure(SECURITY, "moves no pods of others until it has existed for five minutes", (LASTS_S / 60,)),
    Figure(SECURITY, "room within the policies' limits for ten minutes at most", (2 * PATIENCE_S / 60,)),
    Figure(SECURITY, "room is reserved for ten minutes at most", (2 * PATIENCE_S / 60,)),
    Figure(SECURITY, "16 MiB of body and 64 KiB of everything else", (BODY_BYTES >> 20, FRAMING_BYTES >> 10)),
    Figure(SECURITY, "A port takes 200 connections (health: 64)", (PAGES.total, PROBES.total)),
    Figure(
        SECURITY,
        "16 KiB of headers and body, 5 s until the request is complete, 15 s in all (health: 10)",
        (SENT >> 10, PAGES.request_s, PAGES.connection_s, PROBES.connection_s),
    ),
    Figure(
        SECURITY,
        "five new tokens a second for each address, and ten in a burst",
        (REVIEWS_PER_S, REVIEWS),
    ),
    Figure(SECURITY, "free pages every twenty seconds", (TRIM_S,)),
    Figure(SECURITY, "Results for claims and pods below 32 KiB stay", (HEAVY_BYTES >> 10,)),
    Figure(SECURITY, "nothing of a pod or a claim above 32 KiB", (HEAVY_BYTES >> 10,)),
    Figure(SECURITY, "Of an object's annotations 16 KiB are kept", (MOST_ANNOTATIONS >> 10,)),
    Figure(SECURITY, "an attempt compiles 64 KiB of the selectors", (cel.COMPILED >> 10,)),
    Figure(SECURITY, "a pod with more than 1,572,864 characters", (cel.MOST,)),
    Figure(SECURITY, "an attempt has two seconds of CPU time", (BUDGET_S,)),
    Figure(SECURITY, "the members of a PodGroup ten", (GANG_BUDGET_S,)),
    Figure(SECURITY, "a plan has 120 seconds of CPU time", (PLAN_BUDGET_S,)),
    Figure(SECURITY, "waits 15 s for an old one", (Terms().lease_duration_s,)),
    Figure(SECURITY, "A namespace has sixteen at most", (MOST_RULES,)),
    Figure(CONTRIBUTING, "`make test` starts ten more workers than", (option(r"_ONLN\) \+", MAKE),)),
    Figure(
        CONTRIBUTING,
        "takes the nearest forty and begins no test after 18 seconds",
        (option("--most", MAKE), option("--within", MAKE)),
    ),
    Figure(CONTRIBUTING, "the subject has at most 72 characters", (LONGEST,)),
    Figure(CONTRIBUTING, "has axe judge four of its pages", (len(JUDGED),)),
    Figure(CONTRIBUTING, "the twenty dearest files", (DEAREST,)),
    Figure(CONTRIBUTING, "at most three test files reach", (option('"--most", type=int, default', PLANTER),)),
    Figure(CONTRIBUTING, "has eighteen more", (len(SECOND_TIME),)),
    Figure(
        CONTRIBUTING,
        "tries eight in the packages that differ from `main`, a workflow thirty each night",
        (option("SINCE\\) COUNT", MAKE), option("COUNT", MUTANTS)),
    ),
    Figure(
        CONTRIBUTING,
        "five minutes for `eventually`, fifteen for a test",
        (EVENTUALLY_S / 60, option("timeout =", PYPROJECT) / 60),
    ),
    Figure(CONTRIBUTING, "the same twenty examples each time", (settings.get_profile("suite").max_examples,)),
    Figure(CONTRIBUTING, "tries a thousand new ones of each", (settings.get_profile("laws").max_examples,)),
    Figure(REBALANCING, "it is 1 where only the score justifies a move, and 0 where", (100 * SCORE_GAIN, 0)),
    Figure(REBALANCING, "for at most five seconds", (MOST_S,)),
)

#: What was measured once, is an example, or limits nothing: another test holds it, or none can.
OTHERS = (
    "to any address on ports 443, 6443 and 8443",  # tests/deploy/test_manifests.py
    "set and remove two taints",  # tests/deploy/test_only_the_taint.py
    "after two rounds of the two pods with 21,000 resources",
    "was 1.7 % above that before (108.0 instead of 106.2 MB)",
    "After the largest objects for 261 fields of a pod and 407 of other kinds at 5,000 nodes",
    "were 0.4 % and 2.4 % above those before",
    "At 5,000 nodes the largest object (1.5 MB) costs at most 0.5 s of CPU time in the mirror",
    "and 0.5 s in its attempt, and the next pod of another namespace is bound within 1 s",
    "or 300 digits",
    "Played on a development cluster of 30 nodes by a tenant",
    "with the policy the server refused 30 of 30",
    "30 events RecordRefused, nothing reserved, and 28 of 28 pods",
)


def words_of(page: str) -> str:
    """The text of a page in one line, without blocks of code, numbers of lists and of decision records."""
    text = re.sub(r"```.*?```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    text = re.sub(r"^\d+\. ", "", text, flags=re.MULTILINE)
    return re.sub(r"\bADR \d+", "", " ".join(text.split()))


def numbers(words: str) -> Iterator[float]:
    """Those of a text, outside of code and of addresses."""
    for found in NUMBER.findall(re.sub(r"`[^`]*`|\]\([^)]*\)", "", words)):
        yield WORDS.get(found) or float(found.replace(",", ""))


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.words)
def test_a_limit_on_a_page_is_that_of_the_code(figure: Figure) -> None:
    assert figure.words in words_of(figure.page)
    assert tuple(numbers(figure.words)) == figure.values


@pytest.mark.parametrize("page", sorted({each.page for each in FIGURES}))
def test_each_number_of_such_a_page_is_held_by_the_code_or_limits_nothing(page: str) -> None:
    text = words_of(page)
    for words in (*(each.words for each in FIGURES), *OTHERS):
        text = text.replace(words, "")

    assert list(numbers(text)) == []


@pytest.mark.parametrize(
    ("words", "found"),
    [("two of 1,024 in 0.5 s", [2, 1024, 0.5]), ("`x 3` of [a](b4.md), two-fold, v1.36", [])],
)
def test_numbers_are_found(words: str, found: list[float]) -> None:
    assert list(numbers(words)) == found
