"""Targets of the model: quantities, selectors, durations, cron, objects of the API."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import msgspec
from pydantic import TypeAdapter, ValidationError

from fuzzing import specimens
from fuzzing.target import Bound, Broken, Target, kind_of, outcome, text_of
from model.upstream_quantity import Quantity
from plimsoll.api.schema.fields import Duration, duration_s
from plimsoll.api.v1alpha1.schedules import Schedule
from plimsoll.cli.moments import moment_of
from plimsoll.cluster.listed_objects import read_object
from plimsoll.cluster.watched_resources import WATCHED
from plimsoll.commands.errors import UserError
from plimsoll.framework.field_errors import field_errors, summary
from plimsoll.model.decoding import decode
from plimsoll.model.kinds.deployment import Deployment
from plimsoll.model.quantity import Amount, QuantityError, milli, nanos, readable, units
from plimsoll.model.selector_text import parse_selector
from plimsoll.model.selectors import (
    LabelSelector,
    NodeSelector,
    Selector,
    SelectorError,
    compile_node_matcher,
    compile_selector,
    is_label_key,
    is_label_value,
)
from plimsoll.policies.schedule import check, is_open, next_fire
from plimsoll.toolkit.descheduling.protections import duration

LABELS = {"app": "web", "pool": "7", "": "", "a/b": "c"}
NOW = datetime(2026, 3, 29, 0, 30, tzinfo=UTC)

#: The kinds that are watched, and those that are read on demand.
KINDS: tuple[type, ...] = (*(each.kind for each in WATCHED), Deployment)


def quantity(data: bytes) -> object:
    """A quantity, and what upstream makes of it."""
    text = text_of(data)
    if data[:1] == b"\x01":  # as YAML has numbers
        text = text[1:]
        try:
            return outcome(lambda: (nanos(float(text)), milli(float(text))), QuantityError)[1]
        except ValueError:
            return None
    found, kind = outcome(lambda: nanos(text), QuantityError)
    if found is None:
        if readable(text) != 0:
            raise Broken("an unreadable quantity does not count as 0")
        return kind
    amount = Amount.of(text)
    doubled = amount + amount
    if not (doubled.nanos == 2 * amount.nanos and 0 <= abs(units(text)) < 2**63):
        raise Broken("the sum is not the sum")
    stripped = text.strip()
    if len(stripped) < 400 and not stripped.startswith("-") and abs(_exponent(stripped)) < 2000:
        reference = Quantity.parse(stripped)
        for scale, ours in ((0, units(text)), (-3, milli(text))):
            if max(0, reference.value(scale)) != ours:
                raise Broken(f"upstream reads {reference.value(scale)}, we {ours}")
    return (amount.value is None, min(amount.nanos.bit_length() // 8, 60), amount.exponent % 32)


def _exponent(text: str) -> int:
    _, found, power = text.lower().partition("e")
    return int(power) if found and power.lstrip("+-").isascii() and power.lstrip("+-").isdigit() else 0


def selector_text(data: bytes) -> object:
    """A selector in text; written again it means the same."""
    found, kind = outcome(lambda: parse_selector(text_of(data)), SelectorError)
    if found is None:
        return kind
    again = ",".join(map(_written, found.requirements))
    if found.requirements and list(map(_written, parse_selector(again).requirements)) != list(
        map(_written, found.requirements)
    ):
        raise Broken(f"it means something else when it is written again: {again[:200]}")
    return found.matches(LABELS), tuple(sorted({each.operator for each in found.requirements}))


def _written(each: Any) -> str:
    match each.operator:
        case "Exists":
            return str(each.key)
        case "DoesNotExist":
            return f"!{each.key}"
        case "Gt" | "Lt":
            return f"{each.key}{'>' if each.operator == 'Gt' else '<'}{each.bound}"
    return f"{each.key} {each.operator.lower()} ({','.join(sorted(each.values))})"


def selectors(data: bytes) -> object:
    """Selectors of pods and budgets, and node selectors, as JSON."""
    label, kind = outcome(lambda: decode(LabelSelector, data), ValueError)
    if label is not None:
        made, kind = outcome(lambda: compile_selector(label), SelectorError)
        if made is not None:
            _check_labels(made)
            made.matches(LABELS)
    node, more = outcome(lambda: decode(NodeSelector, data), ValueError)
    if node is not None:
        matcher = compile_node_matcher({}, node)
        matcher.matches(LABELS, "n1")
        for term in matcher.terms or ():
            if term.error:
                more += kind_of(term.error)
            if term.error and term.matches(LABELS, "n1"):
                raise Broken("a term that means nothing matches")
    return kind, more


def _check_labels(made: Selector) -> None:
    for each in made.requirements:
        if not is_label_key(each.key) or not all(map(is_label_value, each.values)):
            raise Broken(f"a label that there cannot be: {each}")


def durations(data: bytes) -> object:
    """Durations of policies, of descheduler's arguments, and moments of the command line."""
    text = text_of(data)
    kinds: list[object] = []
    ours = None
    try:
        ours = duration_s(TypeAdapter[str](Duration).validate_python(text))
    except ValidationError:
        kinds.append("refused")
    if ours is not None and not (math.isfinite(ours) and ours >= 0):
        raise Broken(f"a duration of {ours} s")
    theirs, kind = outcome(lambda: duration(text), ValueError)
    if ours is not None and theirs is not None and abs(Fraction(ours) - Fraction(theirs.total_seconds())) > 1:
        raise Broken(f"{ours} s here, {theirs} there")
    moment, more = outcome(lambda: moment_of(text, "--since", 1e9), UserError)
    if moment is not None and not math.isfinite(moment):
        raise Broken(f"the moment {moment}")
    return kind, more, *kinds


def schedules(data: bytes) -> object:
    """Schedules of rebalancing, of windows and freezes: they can be followed, or are refused."""
    try:
        schedule = Schedule.model_validate_json(text_of(data))
    except ValidationError as exc:
        return kind_of(summary(field_errors(exc, model=Schedule)))
    _, kind = outcome(lambda: check(schedule), ValueError)
    if kind:
        return kind
    if schedule.cron is not None:
        fires = next_fire(schedule, NOW)
        is_open(schedule, 3600.0, NOW)
        if fires is not None and fires < NOW:
            raise Broken(f"it fires at {fires}, in the past")
    return schedule.cron is None, bool(schedule.time_zone), len(schedule.triggers)


def objects(data: bytes) -> object:
    """An object of any kind that is watched; the first byte says which."""
    kind = KINDS[data[0] % len(KINDS) if data else 0]
    value, name, problems = read_object(kind, data[1:])
    if value is None and not problems:
        raise Broken("the object is gone without a report")
    for sentence in problems:
        kind_of(sentence)
    kind_of(name, needed=False)
    if value is None:
        return kind.__name__, kind_of(problems[0])
    again: object = decode(kind, msgspec.json.encode(value))
    if again != value and "NaN" not in repr(value):
        raise Broken("written and read again it is another one")
    return kind.__name__, len(problems)


def _objects() -> list[bytes]:
    return [
        bytes([number]) + specimens.document(kind, name="a", namespace="default")
        for number, kind in enumerate(KINDS)
    ]


def texts(*found: str) -> Callable[[], list[bytes]]:
    """Seeds that are written here."""
    return lambda: [each.encode() for each in found]


TARGETS = (
    Target(
        "quantity",
        "model.quantity",
        "amounts of containers, nodes, volumes, metrics",
        quantity,
        texts(
            "500m",
            "1.5Gi",
            "15e-1",
            "0",
            "-1",
            "+100u",
            "1E",
            "9223372036854775807",
            "1e9999",
            "0.1n",
            "\x011.5",
            "\x011e300",
        ),
        (b"Ki", b"Mi", b"Ei", b"m", b"n", b"e", b"E", b"e+", b"e-", b".", b"0000", b"999999999"),
    ),
    Target(
        "selector-text",
        "model.selector_text",
        "-l of the command line, nodeSelector of policies and of descheduler's files",
        selector_text,
        texts(
            "pool=general,zone in (a,b),!legacy",
            "a",
            "a!=b",
            "x notin (c)",
            "n>5,m<7",
            "dns.sub/name==v",
            "a in (),b",
        ),
        (b" in (", b" notin (", b"!=", b"==", b",", b"()", b">", b"<", b"x.io/"),
    ),
    Target(
        "selectors",
        "model.selectors",
        "label selectors and node selectors of pods, budgets, workloads, volumes",
        selectors,
        lambda: [
            b'{"matchLabels":{"app":"web"},"matchExpressions":[{"key":"pool","operator":"In","values":["a"]}]}',
            (
                b'{"nodeSelectorTerms":[{"matchExpressions":[{"key":"pool","operator":"Gt","values":["5"]}],'
                b'"matchFields":[{"key":"metadata.name","operator":"In","values":["n1"]}]}]}'
            ),
        ],
        (b"NotIn", b"Exists", b"DoesNotExist", b"Gt", b"Lt", b'"values":["1","2"]'),
    ),
    Target(
        "durations",
        "api.schema.fields, toolkit.descheduling.protections, cli.moments",
        "durations of policies and descheduler's arguments, --since of the command line",
        durations,
        texts("10m", "1h30m", "1.5s", "-2h", "0", "300ms", "2026-01-31T08:00:00Z", "2026-01-31", "2562047h"),
        (b"ns", b"us", b"h", b"T", b"Z", b"+00:00", b"0001-01-01", b"9999-12-31T23:59:59.999999"),
    ),
    Target(
        "schedules",
        "rebalancing.schedule, api.v1alpha1.schedules",
        "cron, time zones and intervals of policies, windows and freezes",
        schedules,
        texts(
            '{"cron":"0 2 * * mon-fri","timeZone":"Europe/Berlin"}',
            '{"cron":"*/30 22-23 1-7 feb,mar 0-7/2"}',
            '{"intervalSeconds":300,"triggers":["NodeAdded"]}',
        ),
        (
            b"*/",
            b"jan",
            b"sun-sat",
            b"31 2",
            b"29 2",
            b"UTC",
            b"America/Sao_Paulo",
            b"Etc/GMT+12",
            b"posixrules",
            b"../",
        ),
        Bound(seconds=1.0),
    ),
    Target(
        "objects",
        "model.decoding, model.kinds, cluster.listed_objects",
        "objects of every kind that is watched",
        objects,
        _objects,
        (b"null", b'"metadata":', b'"name":"a"', b'"9223372036854775808"', b"1e400"),
    ),
)
