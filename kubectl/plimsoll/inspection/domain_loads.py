"""Reports the nodes, requests and groups of each topology domain, such as a rack."""

from pydantic import Field

from plimsoll.answers.answer import Answer, AnswerPart
from plimsoll.engine.gangs.domain_uses import DomainUse, domain_uses, label_of_groups
from plimsoll.inspection.state import ClusterState
from plimsoll.model.columns.cluster import PODS, Cluster
from plimsoll.model.counted import agreeing, counted


class DomainGroup(AnswerPart):
    """A group in one domain."""

    group: str = Field(description="The group in words, such as PodGroup shop/train.")
    members: int = Field(ge=0, description="Members of the group in the domain.")
    nodes: int = Field(ge=0, description="Nodes there on which no other group has more members.")


class DomainFigures(AnswerPart):
    """The nodes with one value of the label."""

    domain: str = Field(description="Value of the label; empty for nodes without the label.")
    nodes: int = Field(ge=0, description="Nodes with this value of the label.")
    without: int = Field(ge=0, description="Nodes without a member of any group.")
    pods: int = Field(ge=0, description="Pods on its nodes.")
    allocatable: int = Field(description="Amount of the resource on its nodes; cpu in milli.")
    requested: int = Field(description="Amount of it that pods request; cpu in milli.")
    groups: list[DomainGroup] = Field(description="Groups with members there, most members first.")


class DomainLoads(Answer):
    """What is where, by the domains of a label."""

    label: str = Field(description="The node label; empty if none was named and no group names one.")
    resource: str = Field(description="The resource of the amounts.")
    summary: str = Field(description="The answer in a sentence.")
    domains: list[DomainFigures] = Field(
        description="The domains, sorted by value, nodes without the label last."
    )


def domain_loads(state: ClusterState, label: str = "", resource: str = "cpu") -> DomainLoads:
    """The domains of a label; without one, of the label that most groups name."""
    cluster = state.cluster
    label = label or label_of_state(state)
    uses = domain_uses(cluster, label) if label else []
    axis = list(cluster.resources).index(resource)
    found = [_figures(cluster, use, axis) for use in uses]
    return DomainLoads(label=label, resource=resource, summary=_summary(label, found), domains=found)


def label_of_state(state: ClusterState) -> str:
    """The label that most groups name, "" for none."""
    return label_of_groups(state.cluster, (each.groups for each in state.profiles.values()))


def _figures(cluster: Cluster, use: DomainUse, axis: int) -> DomainFigures:
    rows = list(use.rows)
    return DomainFigures(
        domain=use.domain,
        nodes=len(rows),
        without=use.without,
        pods=int(cluster.requested[rows, PODS].sum()),
        allocatable=int(cluster.allocatable[rows, axis].sum()),
        requested=int(cluster.requested[rows, axis].sum()),
        groups=[DomainGroup(group=each.group, members=each.members, nodes=each.nodes) for each in use.groups],
    )


def _summary(label: str, found: list[DomainFigures]) -> str:
    """How many groups run in one domain, and how many straddle."""
    if not label:
        return "no group names a topology label; name one with --label, such as topology.kubernetes.io/zone"
    domains: dict[str, int] = {}
    for each in found:
        for one in each.groups:
            domains[one.group] = domains.get(one.group, 0) + 1
    several = sum(count > 1 for count in domains.values())
    named = sum(bool(each.domain) for each in found)
    said = f"{counted(named, 'domain')} of label {label}; {counted(len(domains), 'group')}"
    if not domains:
        return f"{said} of several pods"
    return f"{said}, of which {several} {agreeing(several, 'runs', 'run')} in more than one"
