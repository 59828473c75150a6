"""Counts the members of groups in each topology domain, for tables and pictures.

Units: nodes, pods. A node with members of several groups is counted for the one with the most members there,
so the nodes of a domain add up.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable

from msgspec import Struct

from plimsoll.engine.gangs.ranks import natural
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.gang_members import GangMembers, GangUnit, GangUnits
from plimsoll.toolkit.scheduling.topology_levels import GroupRules


class GroupShare(Struct, frozen=True):
    """A group in one domain.

    Attributes:
        group: The group in words.
        members: Its members there.
        nodes: Nodes on which no other group has more members.
    """

    group: str
    members: int
    nodes: int


class DomainUse(Struct, frozen=True):
    """The nodes with one value of a label.

    Attributes:
        domain: The value; "" for nodes without the label.
        rows: The rows of its nodes.
        groups: The groups with members there, most members first.
    """

    domain: str
    rows: tuple[int, ...]
    groups: tuple[GroupShare, ...]

    @property
    def without(self) -> int:
        """Nodes without a member of any group."""
        return len(self.rows) - sum(each.nodes for each in self.groups)


def placed_groups(cluster: Cluster) -> list[GangUnit]:
    """The groups of several placed pods, each once, sorted by name."""
    members = cluster.index(GangMembers)
    units = GangUnits(members, cluster.pods.get, cluster.objects)
    found: dict[int, GangUnit] = {}
    for uid in members.gangs:
        unit = units.of(cluster.pods[uid])
        if unit is not None:
            found[id(unit)] = unit
    return sorted(found.values(), key=lambda unit: str(unit.gangs[0]))


def label_of_groups(cluster: Cluster, rules: Iterable[GroupRules] = ()) -> str:
    """The label that most groups name: that they require, or prefer; "" if none names any.

    Args:
        cluster: The cluster.
        rules: What the policies say; their labels count where groups name none.
    """
    named = Counter(
        label
        for group in cluster.objects.pod_groups.values()
        if (label := group.spec.topology_key or group.preferred_topology)
    )
    preferred = (each.preferred for each in rules if each.preferred)
    return min(named, key=lambda label: (-named[label], label)) if named else next(preferred, "")


def domain_uses(cluster: Cluster, label: str) -> list[DomainUse]:
    """Each domain of a label, by name in the order of numbers; nodes without the label come last."""
    rows: defaultdict[str, list[int]] = defaultdict(list)
    for row, node in enumerate(cluster.nodes):
        rows[node.labels.get(label, "")].append(row)
    on: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for unit in placed_groups(cluster):
        for uid in unit.members:
            place = cluster.row_of_pod(uid)
            if place is not None:
                on[place][str(unit.gangs[0])] += 1
    return [
        DomainUse(domain, tuple(rows[domain]), _shares(rows[domain], on))
        for domain in sorted(rows, key=lambda name: (not name, natural(name)))
    ]


def _shares(rows: Iterable[int], on: defaultdict[int, Counter[str]]) -> tuple[GroupShare, ...]:
    members, nodes = Counter[str](), Counter[str]()
    for row in rows:
        if row in on:
            members.update(on[row])
            nodes[min(on[row], key=lambda group: (-on[row][group], group))] += 1
    ordered = sorted(members, key=lambda group: (-members[group], group))
    return tuple(GroupShare(group, members[group], nodes[group]) for group in ordered)
