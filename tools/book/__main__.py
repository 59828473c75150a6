"""Measures the tables of docs/benchmarks.md and writes the page.

PYTHONPATH=tools python -m book                        # everything, some twenty minutes
PYTHONPATH=tools python -m book --only engine,start    # these tables again
PYTHONPATH=tools python -m book --page                 # the page from kept results
PYTHONPATH=tools python -m book --kube FOLDER          # also kube-scheduler and descheduler
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any

import click

from book import page as pages
from book.results import Measured, circumstances, read, write
from book.tables import Table, declared
from plimsoll.commands.parameters import Option, command_of

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "benchmarks.md"
PICTURES = ROOT / "docs" / "benchmarks"
#: Benchmarks import modules that lie next to them.
IMPORTED = ("benchmarks", "benchmarks/end_to_end", "tools")
KEPT = PICTURES / "results.jsonl"


def measure(table: Table, kube: Path | None) -> Measured:
    """Run the commands of a table one after the other.

    Raises:
        subprocess.CalledProcessError: If a benchmark fails; what it said is on the terminal.
    """
    found = circumstances(ROOT)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(IMPORTED)}
    results: list[dict[str, Any]] = []
    for command in table.commands:
        if "{kube}" in command and kube is None:
            continue
        with tempfile.TemporaryDirectory() as folder:
            output = Path(folder) / "results.jsonl"
            arguments = [word.format(output=output, kube=kube) for word in command.split()]
            subprocess.run([sys.executable, *arguments], cwd=ROOT, env=environment, check=True)  # noqa: S603 - as declared
            results += [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    return Measured(table=table.name, circumstances=found, results=tuple(results))


def main(
    only: Annotated[str, Option(help="Names of tables, separated by commas; all by default.")] = "",
    kube: Annotated[
        Path | None, Option(help="Folder of etcd, kube-apiserver, kube-scheduler, descheduler.")
    ] = None,
    page: Annotated[bool, Option("--page", help="Write the page from kept results.")] = False,
) -> None:
    """Measure, keep the results, write the page and its pictures."""
    tables = declared()
    chosen = set(only.split(",")) if only else {table.name for table in tables}
    if unknown := chosen - {table.name for table in tables}:
        known = ", ".join(table.name for table in tables)
        raise click.BadParameter(f"no such table: {', '.join(sorted(unknown))}; there are {known}")
    kept = read(KEPT)
    for table in tables:
        if not page and table.name in chosen:
            click.echo(f"\n== {table.title}")
            kept[table.name] = measure(table, kube)
            write(KEPT, kept.values())
    PAGE.write_text(pages.page(tables, kept), encoding="utf-8")
    pages.pictures(tables, kept, PICTURES)


if __name__ == "__main__":
    command_of(main)()
