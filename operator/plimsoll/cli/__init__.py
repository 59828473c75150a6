"""The command line, a module a command; each command imports what it needs when it runs."""

import typer

import plimsoll
from plimsoll.cli import proposals, run

app = typer.Typer(
    name="plimsoll",
    help="A Kubernetes scheduler and descheduler in one operator.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(plimsoll.__version__)


app.command()(run.run)
for _command, _verb, _word in (("approve", "Carry out", "true"), ("reject", "Call off", "false")):
    _help = f"{_verb} moves that wait for an answer, as plimsoll.dev/approved={_word} on their records does."
    app.command(_command, help=_help)(proposals.answering(_command, approved=_word == "true"))


def main() -> None:
    """The console script."""
    app()
