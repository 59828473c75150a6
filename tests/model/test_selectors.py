"""Label selectors and node selectors, against Kubernetes' rules and laws of their own."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.model.selectors import (
    LabelSelector,
    LabelSelectorRequirement,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    NodeTerm,
    NodeTermIndex,
    Requirement,
    SelectorError,
    compile_node_matcher,
    compile_node_term,
    compile_selector,
    int64,
    is_label_key,
    is_label_value,
    selector_of_labels,
)

KEYS = st.sampled_from(["app", "tier", "zone"])
VALUES = st.sampled_from(["a", "b", "7", ""])
LABELS = st.dictionaries(KEYS, VALUES)
SETS = st.lists(VALUES, min_size=1, max_size=3).map(tuple)


def expression(key: str, operator: str, *values: str) -> NodeSelectorRequirement:
    return NodeSelectorRequirement(key=key, operator=operator, values=values)


def label_selector(labels: dict[str, Any] | None = None, **operators: Any) -> LabelSelector:
    return LabelSelector(
        match_labels=labels or {},
        match_expressions=tuple(
            LabelSelectorRequirement(key="app", operator=operator, values=values)
            for operator, values in operators.items()
        ),
    )


@given(LABELS)
def test_absent_selects_nothing_and_empty_everything(labels: dict[str, Any]) -> None:
    """A nil selector and an empty one are opposites."""
    assert not compile_selector(None).matches(labels)
    assert compile_selector(LabelSelector()).matches(labels)


@given(LABELS, SETS)
def test_not_in_is_the_complement_of_in(labels: dict[str, Any], values: tuple[str, ...]) -> None:
    """For every object exactly one of In and NotIn holds; an absent key is NotIn."""
    within = compile_selector(label_selector(In=values))
    without = compile_selector(label_selector(NotIn=values))

    assert within.matches(labels) is not without.matches(labels)


@given(LABELS)
def test_does_not_exist_is_the_complement_of_exists(labels: dict[str, Any]) -> None:
    """For every object exactly one of Exists and DoesNotExist holds."""
    assert compile_selector(label_selector(Exists=())).matches(labels) is ("app" in labels)
    assert compile_selector(label_selector(DoesNotExist=())).matches(labels) is ("app" not in labels)


@given(LABELS, LABELS)
def test_labels_select_their_supersets(wanted: dict[str, Any], labels: dict[str, Any]) -> None:
    """A selector of labels matches exactly the objects that carry all of them."""
    expected = wanted.items() <= labels.items()

    assert compile_selector(LabelSelector(match_labels=wanted)).matches(labels) is expected
    assert selector_of_labels(wanted).matches(labels) is expected


@given(LABELS)
def test_equal_selectors_are_one_key(labels: dict[str, Any]) -> None:
    """The order in which labels are written neither changes equality nor the hash."""
    backwards = dict(reversed(labels.items()))
    one, other = (compile_selector(LabelSelector(match_labels=each)) for each in (labels, backwards))

    assert one == other
    assert hash(one) == hash(other)


@pytest.mark.parametrize(
    ("selector", "sentence"),
    [
        (label_selector(In=()), "values set can't be empty"),
        (label_selector(Exists=("a",)), "must be empty for exists"),
        (label_selector(Near=("a",)), 'Unsupported value: "Near"'),
        (label_selector(Gt=("1",)), "is not a valid label selector operator"),
        (label_selector({"-bad-": "a"}), 'key: Invalid value: "-bad-"'),
        (label_selector({"app": "not a value"}), 'Invalid value: "not a value"'),
    ],
)
def test_malformed_label_selectors_are_errors(selector: LabelSelector, sentence: str) -> None:
    """The error says which part means nothing."""
    with pytest.raises(SelectorError, match=sentence):
        compile_selector(selector)


@pytest.mark.parametrize(
    ("term", "labels", "name", "expected"),
    [
        pytest.param([expression("n", "Gt", "5")], {"n": "6"}, "x", True, id="greater"),
        pytest.param([expression("n", "Gt", "5")], {"n": "5"}, "x", False, id="strictly"),
        pytest.param([expression("n", "Lt", "5")], {"n": "04"}, "x", True, id="leading-zero"),
        pytest.param([expression("n", "Lt", "5")], {"n": "four"}, "x", False, id="label-is-no-number"),
        pytest.param([expression("n", "Lt", "5")], {}, "x", False, id="label-missing"),
        pytest.param([expression("n", "Gt", "x")], {"n": "6"}, "x", False, id="bound-is-no-number"),
        pytest.param([expression("n", "Gt", "-5")], {"n": "6"}, "x", False, id="bound-is-no-label-value"),
        pytest.param([expression("n", "Gt", "1", "2")], {"n": "6"}, "x", False, id="two-bounds"),
        pytest.param([expression("n", "In")], {"n": "6"}, "x", False, id="in-of-nothing"),
        pytest.param([expression("n", "NotIn", "1")], {}, "x", True, id="not-in-of-missing"),
        pytest.param([], {}, "x", False, id="no-requirement-matches-nothing"),
    ],
)
def test_node_terms_match_by_label(
    term: list[NodeSelectorRequirement], labels: dict[str, Any], name: str, expected: bool
) -> None:
    """Six operators; a term that cannot be parsed, or has no requirement, matches no node."""
    compiled = compile_node_term(NodeSelectorTerm(match_expressions=tuple(term)))

    assert compiled.matches(labels, name) is expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param([expression("metadata.name", "In", "n1")], True, id="in"),
        pytest.param([expression("metadata.name", "NotIn", "n1")], False, id="not-in"),
        pytest.param([expression("metadata.name", "In", "n1", "n2")], False, id="two-values-are-malformed"),
        pytest.param([expression("metadata.name", "Exists")], False, id="other-operators-are-malformed"),
        pytest.param([expression("metadata.uid", "NotIn", "n1")], True, id="an-unknown-field-is-empty"),
    ],
)
def test_node_terms_match_by_name(fields: list[NodeSelectorRequirement], expected: bool) -> None:
    """The name is the only field, and takes In or NotIn with one value."""
    compiled = compile_node_term(NodeSelectorTerm(match_fields=tuple(fields)))

    assert compiled.matches({}, "n1") is expected


OPERATORS = st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"])
REQUIREMENTS = st.builds(Requirement, KEYS, OPERATORS, SETS.map(frozenset), st.sampled_from([0, 6, 7, 8]))
FIELDS = st.tuples(
    st.sampled_from(["metadata.name", "metadata.uid"]), st.sampled_from(["n1", "n2", ""]), st.booleans()
)


@given(st.lists(REQUIREMENTS, max_size=4), st.lists(FIELDS, max_size=3), LABELS)
def test_an_index_of_a_term_matches_what_the_term_does(
    requirements: list[Requirement], fields: list[tuple[str, str, bool]], labels: dict[str, Any]
) -> None:
    """Requirements on one label or on none of the node's, and names, in any number."""
    term = NodeTerm(tuple(requirements), tuple(fields))

    for name in ("n1", "n2", "n3"):
        assert NodeTermIndex(term).matches(labels, name) is term.matches(labels, name)
    assert not NodeTermIndex(NodeTerm(error="malformed")).matches(labels, "n1")


@pytest.mark.parametrize(
    ("operator", "values", "bounds", "holds"),
    [
        pytest.param("In", ({"a", "b"}, {"b", "7"}), (0, 0), ["b"], id="in-both"),
        pytest.param("NotIn", ({"a"}, {"b"}), (0, 0), ["5", "7"], id="in-neither"),
        pytest.param("Gt", ((), ()), (4, 6), ["7"], id="above-both"),
        pytest.param("Lt", ((), ()), (6, 8), ["5"], id="below-both"),
    ],
)
def test_two_requirements_of_one_kind_on_one_label_both_hold(
    operator: str, values: tuple[Any, ...], bounds: tuple[int, ...], holds: list[str]
) -> None:
    """In either order."""
    both = [
        Requirement("k", operator, frozenset(of), bound) for of, bound in zip(values, bounds, strict=True)
    ]
    for some in (both, both[::-1]):
        index = NodeTermIndex(NodeTerm(tuple(some)))

        assert [value for value in ("5", "7", "a", "b") if index.matches({"k": value}, "n1")] == holds


def test_a_node_costs_what_its_labels_do_however_large_the_term(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names that no node has, and 500 requirements on one that each node has."""
    asked: list[str] = []
    matches = Requirement.matches

    def counted(self: Requirement, labels: Any) -> bool:
        asked.append(self.key)
        return matches(self, labels)

    absent = [Requirement(f"k{number}", "DoesNotExist") for number in range(500)]
    host = [Requirement("host", "NotIn", frozenset((f"other-{number}",))) for number in range(500)]
    names = [("metadata.name", f"other-{number}", False) for number in range(500)]
    index = NodeTermIndex(NodeTerm(tuple(absent + host), tuple(names)))
    monkeypatch.setattr(Requirement, "matches", counted)

    assert index.matches({"host": "n1"}, "n1")
    assert asked == ["metadata.name", "host"]


def test_terms_are_alternatives_and_the_selector_is_not() -> None:
    """All pairs of nodeSelector and one term must hold; no term at all holds nowhere."""
    either = NodeSelector(
        node_selector_terms=(
            NodeSelectorTerm(match_expressions=(expression("zone", "In", "a"),)),
            NodeSelectorTerm(match_expressions=(expression("zone", "In", "b"),)),
        )
    )
    matcher = compile_node_matcher({"disk": "ssd"}, either)

    assert matcher.matches({"zone": "b", "disk": "ssd"}, "n")
    assert not matcher.matches({"zone": "b"}, "n")
    assert not matcher.matches({"zone": "c", "disk": "ssd"}, "n")
    assert not compile_node_matcher({}, NodeSelector()).matches({}, "n")
    assert compile_node_matcher().is_empty


def test_a_malformed_term_says_where() -> None:
    """Preferred terms turn this error into a failed attempt, so the path has to be in it."""
    term = NodeSelectorTerm(match_expressions=(expression("n", "Gt", "1.5"),))

    assert compile_node_term(term, "[0]").error == (
        '[0].matchExpressions[0].values[0]: Invalid value: "1.5": '
        "for 'Gt', 'Lt' operators, the value must be an integer"
    )


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("7", 7),
        ("+7", 7),
        ("-7", -7),
        ("007", 7),
        ("", None),
        ("1_0", None),
        (" 1", None),
        ("٣", None),
        (str(2**63), None),
    ],
)
def test_int64_reads_what_go_reads(text: str, number: int | None) -> None:
    """Digits and a sign within 64 bits, and none of Python's liberties."""
    assert int64(text) == number


@pytest.mark.parametrize(
    ("key", "valid"),
    [
        ("app", True),
        ("a.io/app", True),
        ("A.io/app", False),
        ("/app", False),
        ("a/b/c", False),
        ("x" * 64, False),
        ("", False),
    ],
)
def test_label_keys_are_qualified_names(key: str, valid: bool) -> None:
    """An optional lower-case DNS prefix and a name of at most 63 characters."""
    assert is_label_key(key) is valid


@pytest.mark.parametrize(
    ("value", "valid"), [("", True), ("a_b.c-d", True), ("-a", False), ("x" * 64, False)]
)
def test_label_values_may_be_empty(value: str, valid: bool) -> None:
    """Empty, or a name of at most 63 characters."""
    assert is_label_value(value) is valid


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0" * 5000 + "7", 7),
        ("-" + "0" * 5000 + "7", -7),
        ("9" * 5000, None),
        (f"-{2**63}", -(2**63)),
        (str(2**63), None),
    ],
)
def test_integers_are_read_at_any_length(text: str, expected: int | None) -> None:
    """Python converts no more than 4,300 digits."""
    assert int64(text) == expected


def test_an_error_repeats_a_part_of_what_is_wrong() -> None:
    """It becomes an event or a condition of a pod."""
    expressions = tuple(
        NodeSelectorRequirement(key="k" * 9000, operator="In", values=("v" * 9000,)) for _ in range(500)
    )

    term = compile_node_term(NodeSelectorTerm(match_expressions=expressions))

    assert len(term.error) < 4000
    assert term.error.endswith("and 492 more]")
