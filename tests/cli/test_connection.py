"""Commands receive the answer of their session as it is, without a look at what it holds."""

from pathlib import Path

from cli.refusing_server import kubeconfig_of
from plimsoll.cli.connection import with_session
from plimsoll.commands.options import Options
from plimsoll.kube.session.session import Session


class Large:
    """An answer as large as a cluster: to print it would take longer than to use it."""

    printed = 0

    def __repr__(self) -> str:
        Large.printed += 1
        return "a whole cluster"


def test_an_answer_is_not_printed_on_its_way(tmp_path: Path) -> None:
    kubeconfig = kubeconfig_of(tmp_path / "config", "http://127.0.0.1:1")
    large = Large()

    async def ask(session: Session) -> Large:
        return large

    assert with_session(Options(kubeconfig=kubeconfig), ask) is large
    assert Large.printed == 0
