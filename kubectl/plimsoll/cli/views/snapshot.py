"""Lays out an overview of a snapshot: counts, utilisation, the largest namespaces, missing kinds."""

from plimsoll.cli.output import View
from plimsoll.cli.tables import Column, Table
from plimsoll.inspection.overview import ResourceUtilisation, SnapshotOverview
from plimsoll.model.amounts import amount_text

#: Number of unreadable objects listed; -o json lists all.
_SHOWN = 5


def snapshot_view(found: SnapshotOverview) -> View:
    """The tables of an overview."""
    view: list[Table | str] = [
        f"Taken {found.taken:%Y-%m-%dT%H:%M:%SZ} from {found.source}",
        "",
        Table(
            ("KIND", Column("OBJECTS", right=True)), [*found.counts.items(), ("pending pods", found.pending)]
        ),
        "",
        Table(
            (
                "RESOURCE",
                Column("ALLOCATABLE", right=True),
                Column("REQUESTED", right=True),
                Column("REQUESTED%", right=True),
                Column("USED%", right=True),
            ),
            [_utilisation_row(each) for each in found.utilisation],
        ),
    ]
    if found.largest_namespaces:
        view += [
            "",
            Table(
                (
                    "NAMESPACE",
                    Column("PODS", right=True),
                    Column("PENDING", right=True),
                    Column("CPU", right=True),
                    Column("MEMORY", right=True),
                ),
                [
                    (
                        each.namespace,
                        each.pods,
                        each.pending,
                        _amount("cpu", each.cpu_milli),
                        amount_text("memory", each.memory_bytes),
                    )
                    for each in found.largest_namespaces
                ],
            ),
        ]
    if found.policies:
        rows = [(each.name, each.problem or "accepted") for each in found.policies]
        view += ["", Table(("POLICY", "JUDGEMENT"), rows, folds=True)]
    missing = {**found.missing, **({"usage": found.usage_problem} if found.usage_problem else {})}
    if missing:
        kinds: dict[str, list[str]] = {}
        for kind, why in missing.items():
            kinds.setdefault(why, []).append(kind)
        rows = [(why, ", ".join(each)) for why, each in kinds.items()]
        view += ["", Table(("WHY MISSING", "KINDS"), rows, folds=True)]
    if found.unreadable:
        rows = [(f"{each.resource} {each.name}", each.problem) for each in found.unreadable[:_SHOWN]]
        view += ["", Table(("UNREADABLE", "WHY"), rows, folds=True)]
        if len(found.unreadable) > _SHOWN:
            view.append(f"and {len(found.unreadable) - _SHOWN} more; -o json names all")
    return view


def _amount(resource: str, amount: int) -> str:
    """A sum of amounts; whole cores from ten cores on."""
    return (
        str(round(amount / 1000)) if resource == "cpu" and amount >= 10_000 else amount_text(resource, amount)
    )


def _utilisation_row(each: ResourceUtilisation) -> tuple[str, str, str, str, str]:
    return (
        each.resource,
        _amount(each.resource, each.allocatable),
        _amount(each.resource, each.requested),
        f"{100 * each.requested / each.allocatable:.1f}",
        "" if each.used is None else f"{100 * each.used / each.allocatable:.1f}",
    )
