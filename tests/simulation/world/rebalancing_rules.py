"""RebalancingRules of tenants, which come and go while their pods are moved."""

from __future__ import annotations

from typing import Any

from roadstead.values.resources import Obj
from simulation.cluster import NAMESPACE
from simulation.world.part import Part

RULES = "rebalancingrules.plimsoll.dev"

#: Rules in one run, at most.
MOST = 4


class RebalancingRules(Part):
    """A few at a time; the last ones go in the end."""

    def begin(self) -> None:
        """One, so that the operator has read some from the first run on."""
        self.act()

    def act(self) -> None:
        """Somebody writes one, changes one, or deletes one."""
        rule, drawn = self.chosen(RULES), self.random.random()
        if rule is None or (drawn < 0.4 and len(self.cluster.objects(RULES)) < MOST):
            self.create(RULES, self.name("rule"), apiVersion="plimsoll.dev/v1alpha1", spec=self._spec())
        elif drawn < 0.7:
            self.api.update(RULES, {**rule, "spec": self._spec()})
        else:
            self.api.delete(RULES, NAMESPACE, rule["metadata"]["name"])

    def end(self) -> None:
        """None is left: pods that a rule holds would wait for ever on a node that repels them."""
        for each in list(self.cluster.objects(RULES)):
            self.api.delete(RULES, NAMESPACE, each["metadata"]["name"])

    def _spec(self) -> Obj:
        """What a rule forbids, and for which pods."""
        window = {"schedule": self.random.choice(("* * * * *", "*/2 * * * *")), "duration": "20s"}
        limits: tuple[dict[str, Any], ...] = (
            {"never": True},
            {"maxMovesPerHour": self.random.choice((1, 3))},
            {"windows": [window]},
            {"windows": [{**window, "timeZone": "Europe/Berlin"}], "maxMovesPerHour": 2},
        )
        selectors: tuple[dict[str, Any], ...] = (
            {},
            {"podSelector": {"matchLabels": {"app": self.random.choice(("app-0", "app-1"))}}},
            {"podSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}},
        )
        return {**self.random.choice(limits), **self.random.choice(selectors)}
