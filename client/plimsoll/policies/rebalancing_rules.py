"""Reads RebalancingRules into the form that planners ask; one that cannot be read forbids everything.

A rule affects its own namespace only, whatever it holds.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache

import msgspec
from msgspec import Struct
from pydantic import ValidationError

from plimsoll.api.schema.fields import duration_s
from plimsoll.api.schema.label_selectors import compiled
from plimsoll.api.v1alpha1.rebalancing_rule import RebalancingRuleSpec
from plimsoll.api.v1alpha1.schedules import Schedule, Window
from plimsoll.framework.field_errors import field_errors
from plimsoll.model.kinds.rebalancing_rule import RebalancingRule
from plimsoll.model.names import record_key
from plimsoll.model.selectors import EVERYTHING, Selector, SelectorError
from plimsoll.planning.rebalancing_rules import PresentRule, PresentRules
from plimsoll.policies import schedule

#: Rules of one namespace that are read; with more, nothing in it is moved.
MOST_RULES = 16

#: Seconds for which a window is open, at most: a year.
LONGEST_S = 8_784 * 3_600

#: Specs that are kept in their compiled form: of those of at most so many bytes, and of larger ones, which
#: may have a megabyte.
KEPT_SPECS, SHORT, KEPT_LONG = 1_024, 4_096, 32


class ReadRule(Struct, frozen=True):
    """A spec in compiled form.

    Attributes:
        invalid: Why it cannot be carried out, "" if it can.
    """

    selector: Selector = EVERYTHING
    never: bool = False
    windows: tuple[tuple[Schedule, float], ...] = ()
    most: int | None = None
    invalid: str = ""

    def is_open(self, now: datetime) -> bool:
        """Whether a window is open; without windows, always."""
        return not self.windows or any(schedule.is_open(opens, lasts, now) for opens, lasts in self.windows)

    def opens(self, now: datetime) -> datetime | None:
        """When a window opens next, in UTC; None while one is open."""
        if self.invalid or self.is_open(now):
            return None
        times = (schedule.next_time(opens, now) for opens, _ in self.windows)
        return min((each.astimezone(UTC) for each in times if each), default=None)

    def present(self, name: str, now: datetime | None) -> PresentRule:
        """The rule of that name as of now; None leaves its windows out, which forbid for a while only."""
        if self.invalid:
            forbids = f"cannot be carried out, so no pod of the namespace is moved: {self.invalid}"
            return PresentRule(name, forbids=forbids, invalid=self.invalid)
        if self.never:
            return PresentRule(name, self.selector, "keeps it where it is")
        if now is None:
            return PresentRule(name, self.selector, "", self.most)
        opens = self.opens(now)
        forbids = "" if self.is_open(now) else "allows moves only in its windows"
        if opens is not None:
            forbids += f"; the next one opens at {opens:%Y-%m-%d %H:%M} UTC"
        return PresentRule(name, self.selector, forbids, self.most)


def read(rule: RebalancingRule) -> ReadRule:
    """A rule in compiled form; specs that are equal are read once."""
    document = msgspec.json.encode(rule.spec, order="sorted")
    return _short(document) if len(document) <= SHORT else _long(document)


def _read(document: bytes) -> ReadRule:
    try:
        spec = RebalancingRuleSpec.from_wire(msgspec.json.decode(document))
        return ReadRule(
            selector=compiled(spec.pod_selector),
            never=spec.never,
            windows=tuple(_window(each, position) for position, each in enumerate(spec.windows)),
            most=spec.max_moves_per_hour,
        )
    except ValidationError as exc:
        return ReadRule(invalid="; ".join(map(str, field_errors(exc, model=RebalancingRuleSpec))))
    except (SelectorError, msgspec.MsgspecError, TypeError, ValueError) as exc:
        return ReadRule(invalid=str(exc))


_short = lru_cache(maxsize=KEPT_SPECS)(_read)
_long = lru_cache(maxsize=KEPT_LONG)(_read)


def _window(window: Window, position: int) -> tuple[Schedule, float]:
    opening, lasts_s = window.opening, duration_s(window.duration)
    where = f"spec.windows[{position}]"
    try:
        schedule.check(opening)
    except ValueError as exc:
        raise ValueError(f"{where}: {exc}") from exc
    if lasts_s > LONGEST_S:
        raise ValueError(f"{where}.duration: a window is open for at most {LONGEST_S // 3600} hours")
    return opening, lasts_s


def by_namespace(rules: Iterable[RebalancingRule]) -> dict[str, list[RebalancingRule]]:
    """Rules by namespace, sorted by name."""
    found: dict[str, list[RebalancingRule]] = {}
    for rule in rules:
        found.setdefault(rule.namespace, []).append(rule)
    for here in found.values():
        here.sort(key=lambda each: each.name)
    return found


def present_rules(rules: Mapping[str, RebalancingRule], now: datetime | None) -> PresentRules:
    """The rules as of ``now``, with a time zone; a namespace is read when it is first asked for.

    None: without what they forbid for a while only.
    """
    given, known = by_namespace(tuple(rules.values())), dict[str, tuple[PresentRule, ...]]()

    def of(namespace: str) -> tuple[PresentRule, ...]:
        if namespace not in given:
            return ()
        if namespace not in known:
            known[namespace] = present_in(given[namespace], now)
        return known[namespace]

    return of


def present_in(rules: list[RebalancingRule], now: datetime | None) -> tuple[PresentRule, ...]:
    """The rules of one namespace as of now; those above ``MOST_RULES`` forbid everything."""
    found = [_present(each, now) for each in rules[:MOST_RULES]]
    if len(rules) > MOST_RULES:
        many = f"a namespace has at most {MOST_RULES} rules, and this one has {len(rules)}; delete some"
        surplus = rules[MOST_RULES]
        found.append(ReadRule(invalid=many).present(record_key(surplus.namespace, surplus.name), now))
    return tuple(found)


def _present(rule: RebalancingRule, now: datetime | None) -> PresentRule:
    name = record_key(rule.namespace, rule.name)
    try:
        return read(rule).present(name, now)
    except Exception as exc:  # noqa: BLE001 - whatever a rule holds, it affects its own namespace only
        return ReadRule(invalid=repr(exc)).present(name, now)
