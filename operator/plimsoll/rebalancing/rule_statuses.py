"""Writes the statuses of RebalancingRules: condition Active, and the number of pods that a rule holds.

It decides nothing: planners read the rules themselves (:mod:`plimsoll.policies.rebalancing_rules`).
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

from pydantic import ValidationError

from plimsoll.api.schema.conditions import ConditionStatus, with_condition
from plimsoll.api.schema.fields import to_second
from plimsoll.api.v1alpha1.rebalancing_rule import ACTIVE, RebalancingRuleStatus
from plimsoll.framework.descheduling.pod_indexes import PodsByTemplate
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.counted import counted
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.model.kinds.rebalancing_rule import RebalancingRule
from plimsoll.planning.rebalancing_rules import PresentRule
from plimsoll.policies.rebalancing_rules import MOST_RULES, by_namespace, present_in, read
from plimsoll.ports.clock import Clock
from plimsoll.ports.custom_resources import NamespacedStatusWriter
from plimsoll.ports.observer import Observer
from plimsoll.ports.writes import WriteOutcome

#: Seconds between two looks, while there are rules.
LOOK_S = 5.0

#: Statuses that one look writes, so that many rules do not crowd out other requests.
MOST_WRITES = 20


class NamespaceFacts(NamedTuple):
    """What the status of a rule says beyond its spec.

    Attributes:
        pods: For each template one placed pod of the namespace, and the number of these.
        moves: Moves of the namespace within the last hour.
        now: The time, with a time zone.
    """

    pods: Sequence[tuple[PodInfo, int]]
    moves: int
    now: datetime


def status_of(
    rule: RebalancingRule, before: RebalancingRuleStatus, present: PresentRule, facts: NamespaceFacts
) -> RebalancingRuleStatus:
    """The status that a rule should have, by the one that it has."""
    held = sum(count for pod, count in facts.pods if present.keeps(pod) is not None)
    opens = read(rule).opens(facts.now)
    is_valid = not present.invalid
    moves = facts.moves if present.most is not None else None
    conditions = with_condition(
        before.conditions,
        ACTIVE,
        ConditionStatus.TRUE if is_valid else ConditionStatus.FALSE,
        reason="CarriedOut" if is_valid else "Invalid",
        message=_message(present, held, facts),
        now=facts.now,
        generation=rule.metadata.generation,
    )
    return RebalancingRuleStatus(
        observed_generation=rule.metadata.generation,
        held_pods=held,
        moves_last_hour=moves,
        next_opening=to_second(opens) if opens is not None else None,
        conditions=conditions,
    )


def _message(present: PresentRule, held: int, facts: NamespaceFacts) -> str:
    if present.invalid:
        return f"no pod of the namespace is moved until this is corrected: {present.invalid}"
    said = [f"{counted(held, 'pod')} held of {sum(count for _, count in facts.pods)} with a node"]
    if present.most is not None:
        said.append(f"{facts.moves} of {counted(present.most, 'move')} an hour made")
    return "; ".join(said)


def _written(rule: RebalancingRule) -> RebalancingRuleStatus:
    """The status as it is; an empty one if it cannot be read."""
    try:
        return RebalancingRuleStatus.from_wire(rule.status or {})
    except (ValidationError, TypeError):
        return RebalancingRuleStatus()


@dataclass(eq=False)
class RuleStatuses:
    """The statuses of all rules."""

    cluster: Cluster
    statuses: NamespacedStatusWriter
    hourly: Callable[[], Mapping[str, int]]  #: moves within the last hour, by namespace
    clock: Clock
    observer: Observer
    _next: int = field(default=0, init=False)  #: the rule that the next look begins with

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            await self.clock.sleep(LOOK_S)
            try:
                await self.look()
            except Exception as exc:  # noqa: BLE001 - whatever one rule holds, the next look comes
                self.observer.failed("status of RebalancingRules", repr(exc))

    async def look(self) -> None:
        """Write what has changed; at most ``MOST_WRITES``, the others at the next look."""
        if not self.cluster.objects.rules:
            return
        due = await self._due()
        begin = self._next % len(due) if due else 0
        for rule, status in [*due[begin:], *due[:begin]][:MOST_WRITES]:
            answer = await self.statuses.write_status(rule.namespace, rule.name, status.to_wire())
            if answer.is_failure and answer.verdict not in (WriteOutcome.FENCED, WriteOutcome.GONE):
                self.observer.failed(f"status of RebalancingRule {rule.key}", answer.message)
        self._next += MOST_WRITES

    async def _due(self) -> list[tuple[RebalancingRule, RebalancingRuleStatus]]:
        """The rules whose status says something else than it should; of a namespace's surplus, some in turn.

        Between two rules other tasks may run: a namespace may have thousands of rules, and of pods.
        """
        given = by_namespace(self.cluster.objects.rules.values())
        now, hourly = datetime.fromtimestamp(self.clock.now(), UTC), self.hourly()
        due = []
        for namespace, rules in given.items():
            siblings = self.cluster.index(PodsByTemplate).groups.get(namespace, {}).values()
            own = ([pod for pod in each.values() if pod.stands_in_for is None] for each in siblings)
            facts = NamespaceFacts(
                [(pods[0], len(pods)) for pods in own if pods], hourly.get(namespace, 0), now
            )
            presents = present_in(rules, now)
            surplus = rules[MOST_RULES:]
            begin = self._next % len(surplus) if surplus else 0
            some = [*surplus[begin:], *surplus[:begin]][:MOST_WRITES]
            for position, rule in enumerate([*rules[:MOST_RULES], *some]):
                before = _written(rule)
                status = status_of(rule, before, presents[min(position, MOST_RULES)], facts)
                if status != before:
                    due.append((rule, status))
                await asyncio.sleep(0)
        return due
