"""ImproveTopology: move a running group that straddles topology domains into one of them, whole.

Formula, for each group of pods that need one another, all of them running::

    key       = topologyKey, else the label that the group prefers, or its policy for it
    domains   = the values of label key on the nodes of its members
    lost      = slowdownPercent / 100 * seconds since the last of its members started
    candidate = domains > 1 and lost > restartSeconds

A group is expected to run on for as long as it has run so far; ``lost`` is what it would lose in that time.
Groups go in the order of ``(lost - restartSeconds) * members``, the most first. All members leave together or
none does, each for a place in one domain that has room for all of them while they still run: the smallest
that suffices, as the scheduler chooses it. With a required label they stay in their domain of that one.

Units: seconds; percent of a group's time.
Edges: nodes without the label count as one more domain. A group with a member that is protected, does not
run, has no start time, or is placed by another scheduler or with an extender stays; so does one with more
than ``maxMembers``. The limit of a policy for one workload does not apply to a group that leaves whole; all
others and PodDisruptionBudgets do, for all members together.
Source: our own; descheduler has no such strategy. That what has lasted long lasts long is the estimate of
J. R. Gott, "Implications of the Copernican principle for our future prospects", Nature 363 (1993).
Differs: there is nothing upstream to differ from; planner Proven only.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import isinf
from typing import ClassVar

from pydantic import Field, StrictInt, StrictStr

from plimsoll.devices.shared_claims import kept_by_group_claim
from plimsoll.framework import PluginArgs, PodInfo
from plimsoll.framework.descheduling import (
    Bundle,
    Candidate,
    Candidates,
    Complaint,
    Complaints,
    GangUnit,
    Gravity,
    Planner,
    Strategy,
    StrategyContext,
    StrategyKind,
    Vicinity,
    gangs_of,
)
from plimsoll.toolkit.descheduling.container_states import age_s
from plimsoll.toolkit.descheduling.pod_scope import NamespacesArg

#: Maximum number of groups whose places are searched in one run.
MOST_SEARCHED = 16


class ImproveTopologyArgs(PluginArgs):
    """Arguments; the strategy does not exist upstream."""

    namespaces: NamespacesArg | None = Field(
        default=None, description="Namespaces whose groups are moved; left out, all."
    )
    topology_key: StrictStr = Field(
        default="",
        description="Node label whose value all members should share; left out, what the group prefers.",
    )
    slowdown_percent: StrictInt = Field(
        default=10, ge=1, le=100, description="Share of its time that a group in several domains loses."
    )
    restart_seconds: StrictInt = Field(
        default=600, ge=0, description="Seconds of work that a group loses if all of its pods start again."
    )
    max_members: StrictInt = Field(
        default=64, ge=2, le=1000, description="A group with more pods than this stays where it is."
    )


class ImproveTopology(Strategy):
    """Move groups into one topology domain, each whole."""

    name: ClassVar = "ImproveTopology"
    kind: ClassVar = StrategyKind.BALANCE
    args_model: ClassVar = ImproveTopologyArgs
    planners: ClassVar = frozenset({Planner.PROVEN})

    def __init__(self, args: ImproveTopologyArgs) -> None:
        self.args = args

    def candidates(self, context: StrategyContext) -> Candidates:
        """A bundle for each group that has a better place, those that gain most first."""
        found = [(self._gain(unit, context), unit) for unit in context.groups() if self._covers(unit)]
        waiting = [(gain, unit) for gain, unit in found if gain > 0]
        waiting.sort(key=lambda each: (-each[0], _title(each[1])))
        for _, unit in waiting[:MOST_SEARCHED]:
            bundle = self._bundle(unit, context)
            if bundle is not None:
                yield bundle

    def complaints(self, context: StrategyContext, near: Vicinity | None = None) -> Complaints:
        """Groups in several domains, by the number of these beyond one."""
        units = context.groups() if near is None else _units_near(near.pods, context)
        groups = [(_title(unit), list(unit.members.values()), self._key(unit, context)) for unit in units]
        if near is not None:
            groups += self._replaced(near.pods, groups, context)
        return {
            Complaint(f"{title} runs in several domains of label {key}", Gravity.PREFERENCE): float(count - 1)
            for title, members, key in groups
            if key and (count := len(_domains(members, key, context))) > 1
        }

    def _replaced(
        self, pods: Sequence[PodInfo], known: list[tuple[str, list[PodInfo], str]], context: StrategyContext
    ) -> list[tuple[str, list[PodInfo], str]]:
        """Groups of replacements that do not exist yet; those of known groups are added to these."""
        by_title = {title: members for title, members, _ in known}
        found: dict[str, tuple[str, list[PodInfo], str]] = {}
        for pod in pods:
            gang = next(iter(gangs_of(pod.pod)), None) if pod.stands_in_for is not None else None
            if gang is None:
                continue
            if str(gang) in by_title:
                by_title[str(gang)].append(pod)
                continue
            group = context.objects.pod_groups.get(gang.key)
            key = self.args.topology_key or next(iter(context.prospects.near(pod, group)), "")
            found.setdefault(str(gang), (str(gang), [], key))[1].append(pod)
        return list(found.values())

    def _covers(self, unit: GangUnit) -> bool:
        first = next(iter(unit.members.values()))
        is_covered = self.args.namespaces is None or self.args.namespaces.covers(first.namespace)
        return is_covered and len(unit.members) <= self.args.max_members

    def _key(self, unit: GangUnit, context: StrategyContext) -> str:
        """The label that counts for a group, "" for none."""
        if self.args.topology_key:
            return self.args.topology_key
        pod = next(iter(unit.members.values()))
        groups = (context.objects.pod_groups.get(gang.key) for gang in unit.gangs)
        return next((key for group in groups for key in context.prospects.near(pod, group)[:1]), "")

    def _gain(self, unit: GangUnit, context: StrategyContext) -> float:
        """Pod seconds that the group is expected to gain by the move; 0 or less if it is to stay."""
        members, key = list(unit.members.values()), self._key(unit, context)
        if not key or any(pod.pod.status.phase != "Running" for pod in members):
            return 0.0
        if len(_domains(members, key, context)) < 2 or self._is_composite(unit, context):
            return 0.0
        ran = min(age_s(pod.pod.status.start_time, context.now) for pod in members)
        if isinf(ran):
            return 0.0
        lost = self.args.slowdown_percent / 100 * ran
        return (lost - self.args.restart_seconds) * len(members)

    def _is_composite(self, unit: GangUnit, context: StrategyContext) -> bool:
        """Whether it is part of a composite group, whose domains in one another are not searched here."""
        groups = (context.objects.pod_groups.get(gang.key) for gang in unit.gangs)
        return any(group is not None and group.spec.parent for group in groups)

    def _bundle(self, unit: GangUnit, context: StrategyContext) -> Bundle | None:
        """The whole group with its places in one domain; None if it must stay, or has no such place."""
        key, title = self._key(unit, context), _title(unit)
        pods = sorted(unit.members.values(), key=lambda pod: pod.key)
        count = len(_domains(pods, key, context))
        reason = f"{title} runs in {count} domains of label {key}, and one has room for all of it"
        if not context.may_go_whole(pods, reason):
            return None
        required = unit.topology
        inside = [(required, value) for value in _domains(pods, required, context)] if required else []
        places = context.prospects.together(pods, key, inside)
        if places is None:
            for pod in pods:
                refusal = kept_by_group_claim(pod, context.objects)
                if refusal is not None:
                    context.must_stay(pod, f"{title} runs in {count} domains of label {key}", refusal)
            return None
        if any(places[pod.uid] == context.node_of(pod) for pod in pods):
            return None
        return Bundle(
            tuple(Candidate(pod, context.node_of(pod), reason, places[pod.uid]) for pod in pods), group=title
        )


def _title(unit: GangUnit) -> str:
    return str(unit.gangs[0])


def _domains(pods: Iterable[PodInfo], key: str, context: StrategyContext) -> set[str]:
    """The values of a label on the nodes of pods; "" for nodes without it."""
    return {context.node(name).labels.get(key, "") for name in map(context.node_of, pods) if name}


def _units_near(pods: Iterable[PodInfo], context: StrategyContext) -> list[GangUnit]:
    """The groups of these pods that still run, each once."""
    found: defaultdict[str, list[GangUnit]] = defaultdict(list)
    for pod in pods:
        unit = None if pod.stands_in_for is not None else context.group_of(pod)
        if unit is not None:
            found[_title(unit)].append(unit)
    return [units[0] for units in found.values()]
