"""docs/benchmarks.md and its pictures, from kept results."""

import re
from collections.abc import Iterable, Mapping
from math import ceil, floor, log10
from pathlib import Path

from pygal.style import Style

from book.results import Circumstances, Measured
from book.tables import Plot, Table
from charts import pygal

HEAD = """# Benchmarks

`make benchmarks` measures everything on this page and writes it; `make benchmarks ONLY=engine` measures one
table again. `make benchmarks KUBE=FOLDER` also runs kube-scheduler and descheduler; the folder has etcd,
kube-apiserver, kube-controller-manager, kube-scheduler and descheduler. [benchmarking.md](benchmarking.md)
explains each benchmark.

CPU seconds say the same on a machine that is busy with other things; seconds by the clock and rates
do not. Each table names its machine and the load on it.
"""

STYLE = Style(
    background="#ffffff",
    plot_background="#ffffff",
    foreground="#333333",
    foreground_strong="#111111",
    foreground_subtle="#777777",
    font_family="sans-serif",
    label_font_size=12,
    major_label_font_size=12,
    legend_font_size=12,
    title_font_size=15,
    # Okabe and Ito's colours: told apart by people who see few colours.
    colors=(
        "#0072B2",
        "#D55E00",
        "#009E73",
        "#CC79A7",
        "#E69F00",
        "#56B4E9",
        "#000000",
        "#8B6914",
        "#7F3C8D",
        "#11A579",
    ),
)


def page(tables: Iterable[Table], kept: Mapping[str, Measured]) -> str:
    """The whole page; a table without results says how to get them."""
    return "\n".join([HEAD, *(part for table in tables for part in section(table, kept.get(table.name)))])


def section(table: Table, measured: Measured | None) -> Iterable[str]:
    """Heading, text, commands, circumstances, rows, pictures."""
    yield f"## {table.title}\n"
    yield f"{table.text.strip()}\n"
    if measured is None:
        yield f"Not measured yet: `make benchmarks ONLY={table.name}`.\n"
        return
    yield f"{where(measured.circumstances)}\n"
    yield "| " + " | ".join(column.heading for column in table.columns) + " |"
    first = measured.results[0] if measured.results else {}
    numeric = [isinstance(first.get(column.key), int | float) for column in table.columns]
    yield "|" + "|".join(" ---: " if number else " --- " for number in numeric) + "|"
    for result in measured.results:
        yield "| " + " | ".join(column.shown(result) for column in table.columns) + " |"
    yield ""
    for plot in table.plots:
        yield f"![{plot.title}](benchmarks/{plot.name}.svg)\n"


def where(circumstances: Circumstances) -> str:
    """One line about machine, commit and day."""
    return (
        f"Measured at {circumstances.commit} on {circumstances.day}: {circumstances.machine}, "
        f"Python {circumstances.python}, load {circumstances.load:g} before."
    )


def pictures(tables: Iterable[Table], kept: Mapping[str, Measured], folder: Path) -> None:
    """Write each plot that has results as SVG."""
    folder.mkdir(parents=True, exist_ok=True)
    for table in tables:
        if measured := kept.get(table.name):
            for plot in table.plots:
                (folder / f"{plot.name}.svg").write_text(picture(plot, measured), encoding="utf-8")


def picture(plot: Plot, measured: Measured) -> str:
    """Lines over two logarithmic axes: a cost that grows with the cluster rises with slope one."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for result in measured.results:
        if plot.shows(result):
            name = ", ".join(str(result[key]) for key in plot.lines)
            lines.setdefault(name, []).append((result[plot.x], result[plot.y] * plot.scale))
    chart = pygal.XY(
        style=STYLE,
        js=[],
        title=plot.title,
        width=760,
        height=420,
        explicit_size=True,
        logarithmic=True,
        x_value_formatter=lambda value: f"{value:,g}",
        value_formatter=lambda value: f"{value:,g}",
        x_labels=sorted({x for points in lines.values() for x, _ in points}),
        y_labels=powers(y for points in lines.values() for _, y in points),
        truncate_label=-1,
        truncate_legend=-1,
        legend_at_bottom=True,
        show_legend=len(lines) > 1,
        legend_at_bottom_columns=2,
        dots_size=3,
        no_prefix=True,
    )
    for name, points in lines.items():
        chart.add(name, sorted(points))
    # Without the library's comments: one has the day on which the picture was drawn.
    return re.sub(r"<!--.*?-->", "", chart.render(is_unicode=True), flags=re.DOTALL) + "\n"


def powers(values: Iterable[float]) -> list[float]:
    """The powers of ten from the one below the least to the one above the greatest."""
    found = list(values)
    if not found:
        return []
    return [10.0**power for power in range(floor(log10(min(found))), ceil(log10(max(found))) + 1)]
