"""Shows the demo: a headline, progress, the nodes' use before and after, the evictions."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from .balance import Balance
from .devices import LINKED, NodeGpus

#: Rows that the tables show at most; the summary counts all.
NODE_ROWS, EVICTION_ROWS = 16, 12

#: Cells of a bar: a node takes one line of a terminal of 80 columns.
BAR_WIDTH = 12


class Screen:
    """A live view on a terminal, plain lines elsewhere."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._progress = Progress(
            TextColumn("[bold]{task.description:<34}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
        )
        self._table: RenderableType = Text("")
        self._live = Live(
            get_renderable=lambda: Group(self._progress, self._table), console=console, refresh_per_second=4
        )

    def __enter__(self) -> Self:
        if self.console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._table = Text("")
        if self.console.is_terminal:
            self._live.stop()

    def say(self, text: str) -> None:
        """A line that stays."""
        self.console.print(text)

    def step(self, title: str, total: int) -> "Step":
        """A bar to be filled."""
        if not self.console.is_terminal:
            self.console.print(f"- {title}")
        return Step(self, int(self._progress.add_task(title, total=total)))

    def show(self, table: RenderableType) -> None:
        """Put a table below the bars."""
        self._table = table

    def advance(self, task: int, done: int, total: int) -> None:
        """Fill a bar to ``done`` of ``total``."""
        self._progress.update(task, completed=done, total=total)  # type: ignore[arg-type]  # rich's TaskID


class Step:
    """One bar."""

    def __init__(self, screen: Screen, task: int) -> None:
        self._screen = screen
        self._task = task

    def update(self, done: int, total: int) -> None:
        """Fill it to ``done`` of ``total``."""
        self._screen.advance(self._task, done, total)


def share_bar(share: float) -> str:
    """A bar of ``BAR_WIDTH`` cells and the share in percent."""
    cells = min(BAR_WIDTH, round(share * BAR_WIDTH))
    colour = "red" if share > 0.9 else "yellow" if share > 0.6 else "green"
    return f"[{colour}]{'█' * cells}[/]{'·' * (BAR_WIDTH - cells)} {share:4.0%}"


def node_table(before: Balance, after: Balance | None = None) -> Table:
    """Nodes that changed most first, cpu requested before and after."""
    table = Table(title="cpu requested by node", title_justify="left", box=SIMPLE_HEAD)
    table.add_column("node", no_wrap=True)
    table.add_column("before" if after else "cpu", no_wrap=True)
    table.add_column("pods", justify="right")
    later = {use.name: use for use in after.nodes} if after else {}
    if after:
        table.add_column("after", no_wrap=True)
        table.add_column("pods", justify="right")

    def change(name: str, share: float) -> float:
        return abs(later[name].cpu - share) if name in later else share

    uses = sorted(before.nodes, key=lambda use: (-change(use.name, use.cpu), use.name))
    for use in uses[:NODE_ROWS]:
        cells = [use.name, share_bar(use.cpu), str(use.pods)]
        if use.name in later:
            cells += [share_bar(later[use.name].cpu), str(later[use.name].pods)]
        table.add_row(*cells)
    if len(uses) > NODE_ROWS:
        table.caption = f"{NODE_ROWS} of {len(uses)} nodes, those that changed most"
    return table


#: How the GPUs of workloads are coloured, in the order in which they appear.
COLOURS = ("cyan", "yellow", "green")


def gpu_table(before: Sequence[NodeGpus], after: Sequence[NodeGpus] = ()) -> Table:
    """Which workload has which GPU of each node, by its first letter; linked GPUs stand together."""
    users = {user for node in (*before, *after) for user in node.users if user}
    colours = dict(zip(sorted(users), COLOURS, strict=False))
    legend = ", ".join(f"[{colour}]{user[0].upper()}[/] {user}" for user, colour in colours.items())
    table = Table(title="GPUs of each node", title_justify="left", caption=f"{legend}, · free")
    table.add_column("node")
    table.add_column("before" if after else "GPUs")
    table.add_column("free", justify="right")
    later = {node.node: node for node in after}
    if after:
        table.add_column("after")
        table.add_column("free", justify="right")
    for node in before:
        cells = [node.node, _gpu_cells(node, colours), str(node.free)]
        if node.node in later:
            cells += [_gpu_cells(later[node.node], colours), str(later[node.node].free)]
        table.add_row(*cells)
    return table


def _gpu_cells(node: NodeGpus, colours: Mapping[str, str]) -> str:
    cells = [f"[{colours.get(user, 'white')}]{user[0].upper()}[/]" if user else "·" for user in node.users]
    links = (cells[at : at + LINKED] for at in range(0, len(cells), LINKED))
    return "  ".join(" ".join(link) for link in links)


def move_table(records: Sequence[dict[str, Any]]) -> Table:
    """The newest Eviction records, in columns for a terminal of 80."""
    table = Table(title="kubectl get evictions.plimsoll.dev -A", title_justify="left")
    for heading in ("pod", "from", "to", "landed", "phase"):
        table.add_column(heading, no_wrap=True)
    named = sorted(records, key=lambda record: str(record["spec"]["pod"]["name"]))
    newest = sorted(named, key=lambda record: str(record["metadata"]["creationTimestamp"]), reverse=True)
    for record in newest[:EVICTION_ROWS]:
        spec, status = record["spec"], record.get("status", {})
        landed = status.get("replacement", {}).get("node", "")
        table.add_row(
            spec["pod"]["name"], spec["fromNode"], spec.get("targetNode", ""), landed, status.get("phase", "")
        )
    if len(newest) > EVICTION_ROWS:
        table.caption = f"the newest {EVICTION_ROWS} of {len(newest)}"
    return table
