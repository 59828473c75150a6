"""The commands ``plimsoll approve`` and ``plimsoll reject``: answer moves that wait for approval."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer


def answering(command: str, *, approved: bool) -> Callable[..., None]:
    """The command that approves or rejects proposals."""

    def run(
        names: Annotated[
            list[str] | None,
            typer.Argument(metavar="[RECORD]...", help="Records, as kubectl get plev lists them."),
        ] = None,
        *,
        namespace: Annotated[
            str, typer.Option("--namespace", "-n", help="Theirs; left out: that of the kubeconfig's context.")
        ] = "",
        everywhere: Annotated[
            bool, typer.Option("--all-namespaces", "-A", help="With --all: in all namespaces.")
        ] = False,
        everything: Annotated[bool, typer.Option("--all", help="Whatever waits for an answer.")] = False,
        policy: Annotated[str, typer.Option("--policy", help="Only what this policy proposes.")] = "",
        kubeconfig: Annotated[
            Path | None,
            typer.Option("--kubeconfig", envvar="KUBECONFIG", help="The cluster.", dir_okay=False),
        ] = None,
    ) -> None:
        import asyncio  # noqa: PLC0415 - each command loads what it needs

        from plimsoll.app import proposal_answers  # noqa: PLC0415 - likewise
        from plimsoll.kube.session.credentials import present_namespace  # noqa: PLC0415 - likewise
        from plimsoll.kube.session.errors import APIError  # noqa: PLC0415 - likewise
        from plimsoll.kube.session.session import connected  # noqa: PLC0415 - likewise

        if bool(names) == everything:
            raise typer.BadParameter("name records, or say --all; kubectl get plev -A lists them")
        if everywhere and (names or namespace):
            raise typer.BadParameter("--all-namespaces goes with --all, and with no --namespace")
        where = "" if everywhere else namespace or present_namespace(kubeconfig)

        async def say() -> None:
            async with connected(kubeconfig) as session:
                question = proposal_answers.Question(where, tuple(names or ()), policy)
                lines = await proposal_answers.answer(session, question, approved=approved)
            typer.echo("\n".join(lines or [f"nothing waits for an answer in {where or 'any namespace'}"]))

        try:
            asyncio.run(say())
        except (APIError, proposal_answers.ProposalError) as exc:
            typer.echo(f"plimsoll {command}: {exc}", err=True)
            raise typer.Exit(1) from exc

    return run
