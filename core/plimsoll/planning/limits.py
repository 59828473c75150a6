"""Decides whether one more eviction exceeds a limit: of the run, a node, a namespace, a workload at a time.

It keeps the remaining amounts. Order of checks, as in descheduler: total, node, namespace. In addition to
upstream, evictions within a minute and budgets by time of day are checked after the total, and the workload
at the end.
Source: descheduler v0.36, ``pkg/descheduler/evictions/evictions.go``.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from enum import Enum

from msgspec import Struct, field
from msgspec.structs import replace

from plimsoll.framework.descheduling.proposals import Refusal
from plimsoll.model.counted import counted
from plimsoll.planning.rebalancing_rules import PresentRules, fewest_an_hour, no_rules


class Ceiling(Struct, frozen=True):
    """A maximum: a count, or a share of a population; with neither there is no ceiling.

    A share is rounded down, but a share above 0 % allows at least one; 100 % is no ceiling.
    """

    count: int | None = None
    percent: int | None = None

    @property
    def is_set(self) -> bool:
        """Whether there is a ceiling."""
        return self.count is not None or self.percent is not None

    def of(self, population: int) -> int | None:
        """The number allowed for that population; None for any number."""
        if self.count is not None:
            return self.count
        if self.percent is None or self.percent >= 100:
            return None
        return max(self.percent * population // 100, 1) if self.percent else 0


NO_CEILING = Ceiling()


class Limits(Struct, frozen=True):
    """Ceilings of one cycle.

    Attributes:
        per_minute: Evictions within a minute, including those of earlier cycles.
        budgets: Further ceilings on the cycle that hold at present, with their names and ends.
        per_workload: Evictions of one owner, including those whose replacement is not ready yet.
        rules: RebalancingRules, for their number of moves an hour.
    """

    total: Ceiling = NO_CEILING
    per_minute: Ceiling = NO_CEILING
    budgets: tuple[tuple[str, Ceiling], ...] = ()
    per_node: Ceiling = NO_CEILING
    per_namespace: Ceiling = NO_CEILING
    per_workload: Ceiling = Ceiling(count=1)
    rules: PresentRules = no_rules


class LimitLevel(Enum):
    """The ceiling that was reached; the value is the refusal's machine reason."""

    TOTAL = "TotalLimit"
    MINUTE = "RateLimit"
    BUDGET = "EvictionBudget"
    NODE = "NodeLimit"
    NAMESPACE = "NamespaceLimit"
    RULE = "RuleLimit"
    WORKLOAD = "WorkloadLimit"

    @property
    def ends_cycle(self) -> bool:
        """Whether it ends the cycle."""
        return self in (LimitLevel.TOTAL, LimitLevel.MINUTE, LimitLevel.BUDGET)


class LimitReached(Struct, frozen=True):
    """A ceiling that allows no further eviction."""

    level: LimitLevel
    refusal: Refusal


class TalliedCeiling(Struct, frozen=True):
    """A ceiling, and the evictions that count against it.

    Attributes:
        key: Key of the population that a share refers to.
        subject: What it limits: a node, namespace, workload or budget; "" for the whole cycle.
        used: Evictions that count against it.
        rule: The RebalancingRule that sets it, if one does.
    """

    level: LimitLevel
    ceiling: Ceiling
    key: str
    subject: str
    used: int
    rule: str = ""


def workload_key(namespace: str, owner: str) -> str:
    """``namespace/uid`` of an owner: a pod of another namespace that names it does not belong to it."""
    return f"{namespace}/{owner}"


class Workload(Struct, frozen=True):
    """The pods of one owner in its namespace; a pod without owner is its own workload.

    Attributes:
        key: As :func:`workload_key` returns it.
        name: ``Kind namespace/name``, for people.
    """

    key: str
    name: str


class Tally(Struct):
    """Counts the evictions of one cycle against the limits.

    Attributes:
        population: Number of pods at a level, for shares: of all, a node, a namespace, an owner.
        in_flight: Evictions of earlier cycles whose replacements are not ready yet, by workload key.
        recent: Evictions of earlier cycles within the last minute.
        hourly: Moves of all policies within the last hour, by namespace; counted where there are rules.
    """

    limits: Limits
    population: Callable[[LimitLevel, str], int]
    in_flight: Mapping[str, int] = field(default_factory=dict)
    recent: int = 0
    hourly: Mapping[str, int] = field(default_factory=dict)
    total: int = 0
    by_node: Counter[str] = field(default_factory=Counter)
    by_namespace: Counter[str] = field(default_factory=Counter)
    by_workload: Counter[str] = field(default_factory=Counter)

    def copy(self) -> "Tally":
        """A copy, to restore when moves are undone."""
        return replace(
            self,
            by_node=Counter(self.by_node),
            by_namespace=Counter(self.by_namespace),
            by_workload=Counter(self.by_workload),
        )

    def reached(
        self, node: str, namespace: str, workload: Workload, but: LimitLevel | None = None
    ) -> LimitReached | None:
        """The first ceiling that one more eviction would exceed, except for level ``but``."""
        for each in self.ceilings(node, namespace, workload):
            if each.level is but:
                continue
            most = self.most(each)
            if most is not None and each.used + 1 > most:
                sentence = f"at most {counted(most, 'eviction')} {self._scope(each)}"
                return LimitReached(each.level, Refusal(each.level.value, sentence))
        return None

    def ceilings(self, node: str, namespace: str, workload: Workload) -> Iterator[TalliedCeiling]:
        """The ceilings that apply to one more eviction, in the order of the checks."""
        limits = self.limits
        if limits.total.is_set:
            yield TalliedCeiling(LimitLevel.TOTAL, limits.total, "", "", self.total)
        if limits.per_minute.is_set:
            yield TalliedCeiling(LimitLevel.MINUTE, limits.per_minute, "", "", self.total + self.recent)
        for name, ceiling in limits.budgets:
            if ceiling.is_set:
                yield TalliedCeiling(LimitLevel.BUDGET, ceiling, "", name, self.total)
        if limits.per_node.is_set:
            yield TalliedCeiling(LimitLevel.NODE, limits.per_node, node, node, self.by_node[node])
        if limits.per_namespace.is_set:
            sent, level = self.by_namespace[namespace], LimitLevel.NAMESPACE
            yield TalliedCeiling(level, limits.per_namespace, namespace, namespace, sent)
        rules = limits.rules(namespace)
        rule = fewest_an_hour(rules) if rules else None
        if rule is not None:
            sent = self.by_namespace[namespace] + self.hourly.get(namespace, 0)
            ceiling = Ceiling(count=rule.most)
            yield TalliedCeiling(LimitLevel.RULE, ceiling, namespace, namespace, sent, rule.name)
        if limits.per_workload.is_set:
            sent = self.by_workload.get(workload.key, 0) + self.in_flight.get(workload.key, 0)
            level = LimitLevel.WORKLOAD
            yield TalliedCeiling(level, limits.per_workload, workload.key, workload.name, sent)

    def _scope(self, given: TalliedCeiling) -> str:
        """Which evictions a ceiling counts, for people."""
        match given.level:
            case LimitLevel.MINUTE:
                return "within a minute" + (f", {self.recent} of earlier cycles" if self.recent else "")
            case LimitLevel.BUDGET:
                return f'by budget "{given.subject}"'
            case LimitLevel.NODE:
                return f"from node {given.subject}"
            case LimitLevel.NAMESPACE:
                return f"from namespace {given.subject}"
            case LimitLevel.RULE:
                return f"an hour by RebalancingRule {given.rule}"
            case LimitLevel.WORKLOAD:
                flying = self.in_flight.get(given.key, 0)
                return f"of {given.subject}" + (f", {flying} still in flight" if flying else "")
            case _:
                return "in this cycle"

    def most(self, given: TalliedCeiling) -> int | None:
        """How many evictions a ceiling allows; None for any number."""
        ceiling = given.ceiling
        return ceiling.of(0 if ceiling.count is not None else self.population(given.level, given.key))

    def count(self, node: str, namespace: str, workload: Workload) -> None:
        """Count one more eviction."""
        self.total += 1
        self.by_node[node] += 1
        self.by_namespace[namespace] += 1
        self.by_workload[workload.key] += 1
