"""The tables of docs/benchmarks.md, as ``tables.yaml`` declares them."""

from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field

DECLARED = Path(__file__).with_name("tables.yaml")


class Declared(BaseModel):
    """Part of the declaration: immutable, and an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Column(Declared):
    """One column: the key of a result, its heading, and a format specification for numbers.

    Attributes:
        key: Key of the result that a benchmark wrote with ``--output``.
        heading: What stands above the column, with the unit.
        format: Python's format specification for numbers; text is shown as it is.
        scale: Factor of numbers, to show milliseconds of seconds for example.
    """

    key: str
    heading: str
    format: str = ",.0f"
    scale: float = 1.0

    def shown(self, result: dict[str, Any]) -> str:
        """The cell of a result; a dash where the benchmark has no figure."""
        value = result.get(self.key)
        if value is None:
            return "-"
        if isinstance(value, bool | str):
            return str(value)
        return format(value * self.scale, self.format)


class Plot(Declared):
    """Growth: one figure by another, a line for each value of some keys.

    Attributes:
        name: The picture's file name, without suffix.
        title: What is shown, with the unit.
        x: Key of the horizontal axis.
        y: Key of the vertical axis.
        lines: Keys whose values make one line.
        where: Keys with the values that are shown; all results if it is empty.
        scale: Factor of y.
    """

    name: str
    title: str
    x: str
    y: str
    lines: tuple[str, ...]
    where: dict[str, tuple[str, ...]] = Field(default={})
    scale: float = 1.0

    def shows(self, result: dict[str, Any]) -> bool:
        """Whether the result is a point of the picture."""
        is_wanted = all(str(result[key]) in values for key, values in self.where.items())
        return is_wanted and bool(result.get(self.x)) and bool(result.get(self.y))


class Table(Declared):
    """A table: how it is measured and shown.

    Attributes:
        name: Short name, for ``--only``.
        title: Heading.
        text: What is measured, and what is not.
        commands: Arguments of Python in the project's root. ``{output}`` is the file for results; a command
            with ``{kube}`` is run only if the folder of Kubernetes' programs is given.
        columns: From left to right.
        plots: Below the table.
    """

    name: str
    title: str
    text: str
    commands: tuple[str, ...]
    columns: tuple[Column, ...]
    plots: tuple[Plot, ...] = Field(default=())


def declared(path: Path = DECLARED) -> tuple[Table, ...]:
    """All tables, in the order of the page.

    Raises:
        pydantic.ValidationError: If the declaration has an unknown key, or lacks one.
    """
    return tuple(Table.model_validate(table) for table in yaml.safe_load(path.read_text(encoding="utf-8")))
