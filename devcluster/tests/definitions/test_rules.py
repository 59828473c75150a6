"""``x-kubernetes-validations``: rejected definitions and rejected resources."""

from typing import Any, ClassVar

import pytest

from roadstead.definitions.rules import Compiler
from roadstead.values.resources import Obj

SPEC: Obj = {
    "type": "object",
    "properties": {
        "low": {"type": "integer"},
        "high": {"type": "integer"},
        "ratio": {"type": "number"},
        "namespace": {"type": "string"},
        "window": {"type": "string"},
        "wait": {"type": "string", "format": "duration"},
        "since": {"type": "string", "format": "date-time"},
        "memory": {"x-kubernetes-int-or-string": True},
        "names": {"type": "array", "items": {"type": "string"}},
        "limits": {"type": "object", "additionalProperties": {"type": "integer"}},
        "maybe": {"type": "string", "nullable": True},
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "child": {"type": "object", "properties": {"low": {"type": "integer"}}},
    },
}


def with_rules(*rules: Obj | str, **schema: Any) -> Obj:
    """A resource's schema whose spec has these rules."""
    written = [{"rule": rule} if isinstance(rule, str) else rule for rule in rules]
    spec = {**SPEC, "x-kubernetes-validations": written, **schema}
    return {"type": "object", "properties": {"spec": spec}}


def verdict(rule: Obj | str, spec: Obj, old: Obj | None = None) -> list[tuple[str, str]]:
    """Field and message of what a rule says against a spec."""
    compiler = Compiler(with_rules(rule))
    assert not compiler.faults
    assert compiler.rules is not None
    before = None if old is None else {"spec": old}
    causes = compiler.rules.causes({"spec": spec}, before, update=old is not None)
    return [(cause.field, cause.message) for cause in causes]


@pytest.mark.parametrize(
    ("rule", "spec"),
    [
        ("!has(self.low) || self.low > 1", {}),
        ("self.low > 1 || self.high > 1", {"high": 2}),  # an error is absorbed by what is true
        ("self.names.all(n, n.startsWith('x-'))", {"names": ["x-a"]}),
        ("self.names.exists(n, n.matches('^a+$')) && size('äö') == 2", {"names": ["aa"]}),
        ("self.limits.all(k, self.limits[k] > 0)", {"limits": {"a": 1}}),
        ("self.ratio == 2.0 && self.ratio > 1", {"ratio": 2}),
        ("self.low < 1.5", {"low": 1}),
        ("self.__namespace__ == 'a'", {"namespace": "a"}),
        (
            "duration(self.window) > duration('1m') && self.wait == duration('90s')",
            {"window": "2m", "wait": "90s"},
        ),
        ("self.since < timestamp('2021-01-01T00:00:00Z')", {"since": "2020-02-02T02:02:02Z"}),
        ("self.?child.?low.orValue(7) == 7", {}),
        ("quantity(self.memory).isGreaterThan(quantity('1Mi'))", {"memory": "1Gi"}),
        ("isURL('https://example.com/a') && url('https://example.com:8/a').getPort() == '8'", {}),
        ("cidr('10.0.0.0/8').containsIP('10.1.2.3') && ip('::1').family() == 6", {}),
        ("[1, 2].sum() == 3 && ['a', 'b'].isSorted() && sets.contains([1, 2], [1])", {}),
        ("'a,b'.split(',').join('-') == 'a-b' && 'xay'.find('a') == 'a'", {}),
        ("'%s:%d'.format(['a', 1]) == 'a:1' && math.greatest(1, 2) == 2", {}),
        ("has(self.maybe)", {"maybe": None}),
        ("self.child.low == 1", {"child": {"low": 1}}),
    ],
)
def test_rules_that_hold(rule: str, spec: Obj) -> None:
    """The language, as Kubernetes has it."""
    assert verdict(rule, spec) == []


def test_message_of_a_rule_that_does_not_hold() -> None:
    """The message, or the rule; at the field path that is given; values of objects are not told."""
    spec = {"low": 3, "high": 2}

    assert verdict("self.low <= self.high", spec) == [
        ("spec", "Invalid value: failed rule: self.low <= self.high")
    ]
    assert verdict(
        {"rule": "self.low <= self.high", "message": "low must not exceed high", "fieldPath": ".low"}, spec
    ) == [("spec.low", "Invalid value: low must not exceed high")]
    assert verdict({"rule": "false", "message": "no", "reason": "FieldValueForbidden"}, spec) == [
        ("spec", "Forbidden: no")
    ]
    assert verdict({"rule": "false", "messageExpression": "'low is ' + string(self.low)"}, spec) == [
        ("spec", "Invalid value: low is 3")
    ]
    assert verdict({"rule": "false", "message": "no", "messageExpression": "self.window"}, spec) == [
        ("spec", "Invalid value: no")
    ]


def test_rule_that_fails_is_a_refusal() -> None:
    """An error is reported with the rule and never counts as true."""
    assert verdict("self.low > 1", {}) == [
        ("spec", 'Invalid value: "object": no such key: low evaluating rule: self.low > 1')
    ]


def test_value_of_a_scalar_is_in_the_message() -> None:
    """A rule on a string says which one it refuses."""
    schema = {"type": "string", "x-kubernetes-validations": [{"rule": "self == 'a'", "message": "only a"}]}
    rules = Compiler({"type": "object", "properties": {"mode": schema}}).rules
    assert rules is not None

    causes = rules.causes({"mode": "b"})

    assert [(cause.field, cause.message) for cause in causes] == [("mode", 'Invalid value: "b": only a')]


class TestTransitions:
    """Rules about ``oldSelf``."""

    fixed: ClassVar[Obj] = {"rule": "self.low == oldSelf.low", "message": "low is fixed"}

    def test_without_an_old_value_there_is_no_transition(self) -> None:
        """A creation is not judged."""
        assert verdict(self.fixed, {"low": 1}) == []

    def test_change_is_judged(self) -> None:
        """The old value is seen."""
        assert verdict(self.fixed, {"low": 2}, {"low": 1}) == [("spec", "Invalid value: low is fixed")]
        assert verdict(self.fixed, {"low": 1, "high": 2}, {"low": 1}) == []

    def test_optional_old_self_is_judged_at_creation_too(self) -> None:
        """It has no value then."""
        rule = {"rule": "oldSelf.hasValue() || self.low == 1", "optionalOldSelf": True}

        assert verdict(rule, {"low": 1}) == []
        assert verdict(rule, {"low": 2}) != []
        assert verdict(rule, {"low": 2}, {"low": 1}) == []

    def test_unchanged_value_is_let_be(self) -> None:
        """A rule that came later does not stop updates of something else."""
        assert verdict("self.low < 5", {"low": 9}, {"low": 9}) == []
        assert verdict("self.low < 5", {"low": 9}, {"low": 8}) != []

    def test_items_of_a_map_are_found_by_their_keys(self) -> None:
        """Wherever they stand in the list."""
        item = {
            "type": "object",
            "properties": {"name": {"type": "string"}, "size": {"type": "integer"}},
            "x-kubernetes-validations": [{"rule": "self.size >= oldSelf.size", "message": "only grows"}],
        }
        disks = {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": item,
        }
        rules = Compiler({"type": "object", "properties": {"disks": disks}}).rules
        assert rules is not None
        old = {"disks": [{"name": "a", "size": 1}, {"name": "b", "size": 5}]}

        causes = rules.causes({"disks": [{"name": "b", "size": 4}, {"name": "a", "size": 2}]}, old)

        assert [cause.field for cause in causes] == ["disks[0]"]


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        ("self.nope > 1", "undefined field 'nope'"),
        ("self.child.nope > 1", "undefined field 'nope'"),
        ("self.low == 'a'", "found no matching overload for '_==_' applied to '(int, string)'"),
        ("self.names.all(n, n > 1)", "found no matching overload for '_>_' applied to '(string, int)'"),
        ("self.limits['a'] == 'x'", "found no matching overload for '_==_' applied to '(int, string)'"),
        ("self.low", "must evaluate to a bool"),
        ("self.low >", "Syntax error"),
        ("self.open.anything == 1", "undefined field 'anything'"),
        ("metadata.name == 'a'", "undeclared reference to 'metadata.name'"),
        ("quantity(1) == quantity('1')", "found no matching overload for 'quantity' applied to '(int)'"),
        ({"rule": "true", "messageExpression": "self.low"}, "messageExpression must evaluate to a string"),
        ({"rule": "true", "optionalOldSelf": True}, "may not be set if oldSelf is not used in rule"),
    ],
)
def test_rules_that_are_no_rules_of_this_schema(rule: Obj | str, sentence: str) -> None:
    """They are refused when the definition is written, with the place and the reason."""
    faults = Compiler(with_rules(rule)).faults

    assert len(faults) == 1
    assert faults[0].at == ("properties", "spec")
    assert sentence in faults[0].sentence


def test_old_items_of_a_plain_list_cannot_be_matched() -> None:
    """So a rule about them is refused."""
    item = {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}
    schema = {"type": "object", "properties": {"names": {"type": "array", "items": item}}}

    assert "uncorrelatable" in Compiler(schema).faults[0].sentence


def test_word_in_a_string_is_no_old_self() -> None:
    """What a rule quotes, it does not speak of."""
    assert verdict("self.window != 'oldSelf'", {"window": "oldSelf"}) != []


def test_root_rules_see_the_name() -> None:
    """Of metadata a rule may use name and generateName."""
    schema = {**with_rules(), "x-kubernetes-validations": [{"rule": "self.metadata.name == 'default'"}]}
    rules = Compiler(schema).rules
    assert rules is not None

    assert rules.causes({"metadata": {"name": "default", "uid": "x"}}) == []
    assert [cause.field for cause in rules.causes({"metadata": {"name": "other"}})] == ["<nil>"]
