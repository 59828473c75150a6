"""The prose check: sentences that were once in this repository are found again, plain ones are not."""

import ast
from pathlib import Path

import pytest

from prose.__main__ import main
from prose.finds import finds_in
from prose.glossary import UPSTREAM, glossary_problems
from prose.metric_help import metric_help_problems
from prose.modules import first_line_problem

ROOT = Path(__file__).parents[2]

#: Sentences that were docstrings, comments, messages or help texts of Plimsoll, and what is wrong with each.
ONCE_WRITTEN = [
    ("# Others have a say in it, over the network: it goes on beside the loop.", "beside"),
    ("# added in thought, which no filter but an additive one makes light of", "in thought"),
    ("# added in thought, which no filter but an additive one makes light of", "makes light of"),
    ("'''Looks at what it has; what it does not look at, nobody evicts.'''", "nobody"),
    ("'''Interleaves of each owner a share, instead of all of one by name.'''", "by name"),
    ("'''Fans out to observers; one that fails is not told of to the others' cost.'''", "told of"),
    ("# What base64 stands for; nothing is nothing.", "stands for"),
    ("x = 'the planner is told that nodes are full, and computes anew'", "is told"),
    ("x = 'the planner is told that nodes are full, and computes anew'", "anew"),
    ("x = f'{node} asks of whoever waits that all of them leave at once'", "asks of"),
    ("x = f'{node} asks of whoever waits that all of them leave at once'", "whoever"),
    ("x = f'{node} asks of whoever waits that all of them leave at once'", "at once"),
    ("'''Ends when the cluster\n    comes\n    to rest.'''", "comes to rest"),
    ("# A preemption that comes to nothing leaves the nomination as ever.", "comes to nothing"),
    ("# A preemption that comes to nothing leaves the nomination as ever.", "as ever"),
    ("# closed for good: the condition is none of ours", "for good"),
    ("x = 'this path is none, a folder and the like'", "is none"),
    ("x = 'this path is none, a folder and the like'", "the like"),
    ("# which policy has its turn is for the dice", "has turn"),
    ("def roll(dice): ...", "dice"),
    ("def test_a_pod_nobody_wants(): ...", "nobody"),
]

FIRST_LINES = [
    "What plugins say of pods that wait: whether one may be tried at all, and what may help one refused.",
    "Whether evictions by request can be had: asked again and again, so that an upgraded one is soon used.",
    "Moves whose pods leave by EvictionRequest: who responds for the pod decides how, and takes time.",
    "Caches scores: what can be kept is, the rest is asked.",
    "Decide recorded cases again.",
    "Policies that were deleted",
]

PLAIN = [
    "# Sorts nodes by name, then looks each of them up by name.",
    "'''Returns None if the node is None.'''",
    "'''Rejects the pod for good reason.'''",
    "# Nodes next to each other are read simultaneously.",
    "name = 'nobody'",
]


@pytest.mark.parametrize(("source", "rule"), ONCE_WRITTEN)
def test_a_sentence_of_old_is_found(source: str, rule: str) -> None:
    """Each phrase of the list is found where it was written: comment, docstring, message, or name."""
    assert rule in {find.rule for find in finds_in(Path("operator/plimsoll/module.py"), source)}


@pytest.mark.parametrize("first", FIRST_LINES)
def test_a_riddle_is_no_first_line(first: str) -> None:
    """A module's first line is indicative, a sentence, and has nouns in place of clauses."""
    assert first_line_problem(first)


@pytest.mark.parametrize("source", PLAIN)
def test_plain_english_passes(source: str) -> None:
    """What only looks like a banned phrase is left alone."""
    assert list(finds_in(Path("operator/plimsoll/module.py"), source)) == []


def test_a_find_names_its_line_and_a_better_phrase() -> None:
    """A reader goes from the line of the report to the place and has a suggestion."""
    source = '"""Caches filter results per pod template."""\n\n# One line,\n# and nobody looks.\n'

    (find,) = finds_in(Path("operator/plimsoll/module.py"), source)

    assert str(find).startswith(
        "operator/plimsoll/module.py:4: nobody: One line, and [nobody] looks. -> name what"
    )


def test_documents_and_manifests_are_read() -> None:
    """Markdown outside of code spans, and comments and values of YAML."""
    page = "The `beside` flag.\nEvictions beside the loop.\n"
    manifest = "# what nobody\n# reads\ndata: told of\n"

    assert [(find.line, find.rule) for find in finds_in(Path("docs/page.md"), page)] == [(2, "beside")]
    assert sorted((find.line, find.rule) for find in finds_in(Path("deploy/a.yaml"), manifest)) == [
        (1, "nobody"),
        (3, "told of"),
    ]


def test_a_gerund_is_no_module() -> None:
    """Modules are named after what they define; upstream's nouns in -ing stay."""
    gerund, noun, tested = (
        [find.rule for find in finds_in(Path(name), '"""Rate limiter."""\n')]
        for name in (
            "core/plimsoll/engine/heeding.py",
            "operator/plimsoll/binding/binding.py",
            "tests/test_eating.py",
        )
    )

    assert gerund == ["module name"]
    assert noun == []
    assert tested == []


def test_a_retired_class_name_is_found() -> None:
    """A class with a name that was replaced by upstream's word; the development cluster has its own words."""
    source = '"""Reservations."""\n\n\nclass Rooms: ...\n'

    assert [find.instead for find in finds_in(Path("operator/plimsoll/rooms.py"), source)] == ["Reservations"]
    assert list(finds_in(Path("devcluster/src/rooms.py"), source)) == []


def test_metric_help_names_every_label() -> None:
    """In the order of the labels; values may follow in brackets."""

    def problems(text: str, labels: str) -> list[str]:
        tree = ast.parse(f"Counter('x', {text!r}, {labels})")
        return [ending for _, ending in metric_help_problems(tree)]

    assert problems("Pods that room was made for.", "['result', 'why']") == ["Labeled by result and why."]
    assert problems("Attempts. Labeled by why and result.", "['result', 'why']") == [
        "Labeled by result and why."
    ]
    assert problems("Attempts. Labeled by result (success, error) and why.", "['result', 'why']") == []
    assert problems("Attempts.", "[]") == []


def test_the_glossary_has_each_word_once() -> None:
    """A missing word, a doubled one, and a word of ours without a reason are found."""
    rows = "\n".join(f"| {word} | a meaning |" for word in UPSTREAM[1:])
    own = "| Word | Meaning | Why upstream has no word for it |\n| --- | --- | --- |\n| bundle | moves |  |\n"
    page = f"| Word | Meaning |\n| --- | --- |\n{rows}\n{rows.splitlines()[-1]}\n\n{own}"

    problems = " ".join(problem for _, problem in glossary_problems(page))

    assert "'allocatable' is missing" in problems
    assert "'victim' is explained 2 times" in problems
    assert "'bundle' is a word of ours: say why" in problems


def test_our_glossary_is_complete() -> None:
    """docs/glossary.md passes."""
    assert list(glossary_problems((ROOT / "docs/glossary.md").read_text(encoding="utf-8"))) == []


def test_the_command_lists_finds_of_the_tree_or_of_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It fails when there is one."""
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text("Nobody looks.\n", encoding="utf-8")
    (tmp_path / "docs").mkdir()

    assert main([]) == 1
    assert "page.md:1: nobody" in capsys.readouterr().out
    assert main(["docs"]) == 0
    assert main(["page.md"]) == 1

    page.write_text("No watcher looks.\n", encoding="utf-8")

    assert main([]) == 0
