"""The answer of ``plimsoll convert``, and its report as a table."""

import textwrap
from collections import Counter
from collections.abc import Iterator
from typing import Any

from pydantic import Field

from plimsoll.answers.answer import Answer, AnswerPart
from plimsoll.cli.tables import Column, Table
from plimsoll.commands.printable import printable
from plimsoll.migration.conversion import ConvertedFiles
from plimsoll.migration.report import AS_WRITTEN, FieldChange, ReportLine
from plimsoll.model.counted import counted

WORDS = {
    FieldChange.KEPT: "kept",
    FieldChange.RENAMED: "renamed",
    FieldChange.DEFAULT_DIFFERS: "default differs",
    FieldChange.NO_COUNTERPART: "no counterpart",
}


class ConversionLine(AnswerPart):
    """The outcome of one field."""

    change: FieldChange = Field(description="What became of it.")
    file: str = Field(description="File, with the document or ConfigMap in it.")
    line: int | None = Field(default=None, description="Line in the file, from 1; left out when not known.")
    source: str | None = Field(
        default=None,
        description="Path of the field; left out where the file says nothing and a default counts.",
    )
    policies: tuple[str, ...] = Field(default=(), description="Policies or PodGroups that the target is in.")
    target: str | None = Field(
        default=None,
        description="Path in the result, or a flag of plimsoll run; left out without a counterpart.",
    )
    sentence: str = Field(description="What changes, and what to do.")


class Conversion(Answer):
    """Policies and PodGroups converted from files, and the outcome of each field."""

    policies: tuple[dict[str, Any], ...] = Field(description="SchedulingPolicies, as kubectl applies them.")
    groups: tuple[dict[str, Any], ...] = Field(default=(), description="PodGroups, as kubectl applies them.")
    report: tuple[ConversionLine, ...] = Field(description="What became of each field, in the files' order.")


def answer_of(converted: ConvertedFiles) -> Conversion:
    """The answer for programs."""
    return Conversion(
        policies=tuple(dict(each) for each in converted.policies),
        groups=tuple(dict(each) for each in converted.groups),
        report=tuple(_line(each) for each in converted.report),
    )


def _line(line: ReportLine) -> ConversionLine:
    return ConversionLine(
        change=line.change,
        file=line.origin,
        line=line.line or None,
        source=line.source or None,
        policies=line.policies,
        target=line.target or None,
        sentence=line.sentence,
    )


def report_table(converted: ConvertedFiles) -> Table:
    """The report for people; the wide form adds the file and the policy of each line."""
    return Table(
        [
            Column("FILE", wide=True),
            Column("LINE", right=True),
            "CHANGE",
            "FIELD",
            Column("POLICIES", wide=True),
            "BECOMES",
            "NOTE",
        ],
        [
            (
                each.origin,
                each.line or "-",
                WORDS[each.change],
                each.source or "-",
                ", ".join(each.policies) or "-",
                each.target or "-",
                each.sentence,
            )
            for each in converted.report
        ],
        folds=True,
    )


def report_lines(converted: ConvertedFiles, *, wide: bool, width: int | None) -> Iterator[str]:
    """The report as a table, or as one entry per field if the table is wider than the terminal."""
    table = list(report_table(converted).lines(wide=wide))
    if width is None or max(map(len, table)) <= width:
        yield from table
        return
    for each in converted.report:
        yield f"{each.line or '-':>4}  {WORDS[each.change]}: {printable(each.source or each.target)}"
        if each.source and each.target:
            yield f"      -> {printable(each.target)}"
        if each.sentence != AS_WRITTEN:
            text = textwrap.wrap(printable(each.sentence), width - 6, break_long_words=False)
            yield from (f"      {line}" for line in text)


def summary_of(converted: ConvertedFiles) -> str:
    """The number of policies and PodGroups, and of fields of each kind."""
    counts = Counter(each.change for each in converted.report)
    policies = counted(len(converted.policies), "policy", "policies")
    fields = ", ".join(f"{counts[change]} {word}" for change, word in WORDS.items())
    groups = f", {counted(len(converted.groups), 'PodGroup')}" if converted.groups else ""
    return f"{policies}{groups}; fields: {fields}"
