"""Lines of rare answers: a fourth error, a plan that failed, an empty column, an anchor that is repeated."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspection.explanations.test_pod import balancing, drifted, node
from plimsoll.answers.operator_memory import RoomMemory
from plimsoll.check.checks import judged_review
from plimsoll.cli import progress
from plimsoll.cli.callers.proposal_answers import ProposalError, Question, answer
from plimsoll.cli.manifests import _check_shape
from plimsoll.cli.reports import _table
from plimsoll.cli.tables import Column, Table
from plimsoll.cli.views.explain_node import _plans, node_view
from plimsoll.cli.views.explain_pod import room_lines
from plimsoll.commands.errors import sentence
from plimsoll.commands.parameters import Argument, parameters_of
from plimsoll.inspection.explanations.node import NodePolicyView
from plimsoll.kube.session.errors import Conflict, NotFound
from plimsoll.preflight.findings import Unread

UNREAD = Unread(("get", "", "x"), "", 403, "no")  # type: ignore[arg-type] # only that it is there counts


class Problem:
    """So many errors of a document."""

    def __init__(self, count: int) -> None:
        self.count = count

    def errors(self, **_: Any) -> list[dict[str, Any]]:
        return [{"loc": ("spec", at), "msg": f"wrong {at}"} for at in range(self.count)]


@pytest.mark.parametrize("count", range(1, 7))
def test_three_errors_are_named_and_the_others_counted(count: int) -> None:
    said = sentence(Problem(count)).split("; ")

    assert said[:3] == [f"spec.{at}: wrong {at}" for at in range(min(count, 3))]
    assert said[3:] == ([f"and {count - 3} more"] if count > 3 else [])


class Bars:
    """Counts what is drawn."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def start(self) -> None:
        self.done.append("start")

    def stop(self) -> None:
        self.done.append("stop")

    def update(self, what: str, done: int, total: int | None) -> None:
        self.done.append(f"{what} {done}/{total}")


@pytest.mark.parametrize("shown_before", [0, 1, 3, None])
def test_bars_appear_once_and_go_if_they_appeared(
    shown_before: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what is known by then; the timer may come before the first step, between two, or never."""
    bars = Bars()
    monkeypatch.setattr("plimsoll.cli.views.progress_bars.ProgressBars", lambda _: bars)
    one = progress.Progress("pods")
    for step in range(4):
        if step == shown_before:
            one.show()
        if step < 3:
            one("pods", step)
    one.close()

    told = [f"pods {step}/None" for step in range(3)]
    expected = {
        0: ["start", *told, "stop"],
        1: [told[0], "start", *told[1:], "stop"],
        3: [told[2], "start", "stop"],
        None: [],
    }
    assert bars.done == expected[shown_before]


@given(st.lists(st.lists(st.sampled_from([None, "", "x", 0]), min_size=3, max_size=3), max_size=4))
def test_a_table_of_a_page_has_the_columns_of_which_any_row_says_something(rows: list[list[Any]]) -> None:
    found = _table(
        Table(("A", Column("B", right=True), Column("C", right=True)), [tuple(row) for row in rows])
    )

    texts = [["" if cell is None else str(cell) for cell in row] for row in rows]
    kept = [at for at in range(3) if any(row[at] for row in texts)]
    assert list(found.headings) == ["ABC"[at] for at in kept]
    assert [list(row) for row in found.rows] == [[row[at] for at in kept] for row in texts]
    assert found.numeric == {place for place, at in enumerate(kept) if at > 0}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"problem": "its strategy failed", "leave": ["a"]}, "its strategy failed"),
        ({}, "moves nothing"),
        ({"remarks": ["it is full"]}, "moves nothing; it is full"),
        ({"leave": ["a", "b"], "arrive": ["c"]}, "moves off a, b; moves here c"),
        ({"stay": {"Budget": 2, "NodeLimit": 1}, "remarks": ["r"]}, "stay: 2 Budget, 1 NodeLimit; r"),
    ],
)
def test_a_policy_says_what_its_next_run_does_to_a_node(fields: dict[str, Any], said: str) -> None:
    view = {"leave": [], "arrive": [], "stay": {}, "remarks": [], "problem": ""}
    each = NodePolicyView(policy="p", mode="Enforce", classes={}, **{**view, **fields})

    assert _plans(each) == said


@pytest.mark.parametrize(("left", "ending"), [(None, ""), (0, " for 0s"), (12, " for 12s")])
def test_held_room_says_for_how_long(left: int | None, ending: str) -> None:
    room = RoomMemory(node="n", pod="a/p", reason="Room", owner="", seconds_left=left)

    assert room_lines([room]) == [f"  n is held for a/p (Room, no owner){ending}"]


def test_aliases_cost_what_they_repeat(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted in characters, and one for each node; an alias of nothing is the parser's error."""
    monkeypatch.setattr("plimsoll.cli.manifests.LONGEST", 12)

    _check_shape("a: &a xxxxx\nb: [*a, *a]\n")  # 6 each
    _check_shape("a: &a [x, y]\nb: [*a, *a]\n")  # 2 each, and 1 for the list
    with pytest.raises(ValueError, match="aliases repeat more"):
        _check_shape("a: &a xxxxx\nb: [*a, *a, *a]\n")
    _check_shape("b: [" + ", ".join(["*unknown"] * 20) + "]\n")


def test_prose_about_a_node_folds_and_numbers_do_not() -> None:
    """The tables of its use, of policies and of pods."""
    view = node_view(node(*drifted(), balancing("Proven")))

    assert [each.folds for each in view if isinstance(each, Table)] == [False, True, True]


class Contested:
    """A session that has two proposals, the second of which somebody else changes meanwhile."""

    records = tuple(
        {
            "metadata": {"name": f"web-{at}", "namespace": "shop", "resourceVersion": str(at)},
            "spec": {"mode": "Approve", "policy": "tidy"},
            "status": {"phase": "Planned"},
        }
        for at in (1, 2)
    )

    async def object(self, _method: str, path: str) -> dict[str, Any]:
        return {"items": self.records}

    async def request(self, _method: str, path: str, _change: Any, **_: Any) -> None:
        if path.endswith("web-2"):
            raise Conflict(f"PATCH {path}", 409)


async def test_what_was_approved_before_a_conflict_is_said() -> None:
    """Who says it again must know that half of it is done."""
    session: Any = Contested()
    done = "answered before it: eviction.plimsoll.dev/web-1 approved"
    with pytest.raises(
        ProposalError, match=f"^eviction.plimsoll.dev/web-2 has changed since it was read; {done}; "
    ):
        await answer(session, Question("shop"), approved=True)


class Gone(Contested):
    """The second proposal changes, and is then as told: decided, still waiting, or gone."""

    def __init__(self, later: Mapping[str, Any] | None) -> None:
        self._later = later

    async def object(self, method: str, path: str) -> dict[str, Any]:
        if not path.endswith("web-2"):
            return await super().object(method, path)
        if self._later is None:
            raise NotFound(f"GET {path}", 404)
        return {**self.records[1], **self._later}


@pytest.mark.parametrize("named", [(), ("web-1", "web-2")], ids=["all", "named"])
@pytest.mark.parametrize(
    ("later", "waits"),
    [
        (None, False),
        ({"status": {"phase": "Failed"}}, False),
        ({}, True),
    ],
    ids=["gone", "ended", "waits"],
)
async def test_a_proposal_that_ended_meanwhile_needs_no_rejection_unless_it_was_named(
    later: Mapping[str, Any] | None, waits: bool, named: tuple[str, ...]
) -> None:
    """Of all that wait, what no longer does is passed over."""
    session: Any = Gone(later)
    asked = answer(session, Question("shop", named), approved=False)
    if waits or named:
        with pytest.raises((ProposalError, NotFound)):
            await asked
    else:
        assert await asked == ["eviction.plimsoll.dev/web-1 rejected"]


@pytest.mark.parametrize("leases", [{}, UNREAD], ids=["read", "not read"])
@pytest.mark.parametrize("installed", [(), UNREAD], ids=["read", "not read"])
def test_an_operator_that_was_not_found_may_be_hidden(leases: Any, installed: Any) -> None:
    """By either of the two reads that fails."""
    survey: Any = SimpleNamespace(leases=leases, installed=installed)

    (finding,) = judged_review(survey, ())

    is_hidden = UNREAD in (leases, installed)
    why = "leases and Deployments could not be read" if is_hidden else "no operator was found"
    assert finding.message == f"not checked: its ServiceAccount is not known, because {why}"


def test_the_parameters_of_a_function_whose_annotations_are_texts_are_read() -> None:
    """As in a package's module that postpones them."""

    def run(name: Annotated[str, Argument(help="A name.")]) -> None:
        """Run."""

    assert run.__annotations__["name"].startswith("Annotated[")
    assert [each.name for each in parameters_of(run)] == ["name"]
