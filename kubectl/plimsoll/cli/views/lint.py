"""Lays out the findings of ``plimsoll lint`` as a table."""

from collections import Counter

from plimsoll.cli.output import View
from plimsoll.cli.tables import Column, Table
from plimsoll.inspection.lint.rule import Severity
from plimsoll.inspection.lint.rules import Lint


def view_of(found: Lint, namespace: str = "") -> View:
    """The findings and their number; ``namespace`` is the only one examined, "" for all."""
    counts = Counter(each.severity for each in found.findings)
    told = ", ".join(f"{counts[each]} {each}" for each in reversed(Severity))
    parts: list[Table | str] = [f"Findings: {told}. Workloads: {found.workloads}, budgets: {found.budgets}."]
    if found.findings:
        parts.append("")
        parts.append(
            Table(
                [
                    Column("SEVERITY", status=True),
                    "RULE",
                    "NAMESPACE",
                    "OBJECT",
                    Column("FILE", wide=True),
                    Column("WHAT TO DO", wide=True),
                    "MESSAGE",
                ],
                [
                    (
                        each.severity,
                        each.rule,
                        each.namespace,
                        f"{each.kind}/{each.name}",
                        each.source,
                        each.remedy,
                        each.message,
                    )
                    for each in found.findings
                ],
                folds=True,
            )
        )
    if namespace and not found.workloads and not found.budgets:
        parts.append(f"Namespace {namespace} has no workloads and no budgets; -A looks in all namespaces.")
    unchecked: dict[str, list[str]] = {}
    for rule in found.unchecked:
        unchecked.setdefault(rule.why, []).append(rule.rule)
    parts += [f"Not applied, {why}: {', '.join(rules)}." for why, rules in unchecked.items()]
    return parts
