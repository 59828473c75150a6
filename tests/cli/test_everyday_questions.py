"""docs/everyday-questions.md, with one cluster over HTTP: the first line of each answer is the answer.

PLIMSOLL_WRITE_GOLDEN=1 writes the answers, with … for times.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cli.commands import say
from cli.everyday_scene import everyday
from deploy.tools import ROOT, tool
from e2e.page_shell import ShownCommand, named_files, shown_commands
from roadstead.clients import ApiError

if TYPE_CHECKING:
    from roadstead.clients import RunningCluster
    from roadstead.pytest_plugin import StartRoadstead

PAGE = ROOT / "docs" / "everyday-questions.md"
QUESTION = re.compile(r"^### ([^\n]+\?)\n\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
#: Lines of an answer that the page shows.
SHOWN = 7
_VARYING = re.compile(r"\d{4}-\d\d-\d\dT[\d:]+Z|\b\d{1,2}[smhd]\b")


def questions(text: str) -> list[tuple[str, str]]:
    """Each question, and what stands below it."""
    return QUESTION.findall(text)


def load(cluster: RunningCluster) -> None:
    """Create the objects, and then what their status says."""
    cluster.apply(*sorted((ROOT / "crds").glob("*.yaml")))
    uids: dict[str, str] = {}
    for each in everyday():
        status = each.pop("status", None)
        each["metadata"].pop("uid", None)
        if status and (new := status.get("replacement")):
            new["uid"] = uids.get(new["name"], new["uid"])
        (made,) = cluster.apply(each, namespace="")
        uids[made["metadata"]["name"]] = made["metadata"]["uid"]
        if status is not None:
            resource = cluster._resource_of(made)
            path = resource.path(made["metadata"].get("namespace", ""), made["metadata"]["name"])
            try:
                cluster._send(
                    "PATCH",
                    f"{path}/status",
                    {"status": status},
                    headers={"Content-Type": "application/merge-patch+json"},
                )
            except ApiError as error:  # pragma: no cover - says which object of the scene is wrong
                pytest.fail(f"{made['kind']} {made['metadata']['name']}: {error}")


def run(command: str, kubeconfig: Path) -> str:
    """What a command prints."""
    program, *words = shlex.split(command)
    if program == "plimsoll":
        said = say(*words, KUBECONFIG=str(kubeconfig), COLUMNS="110")
        return said.out + said.err
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    done = subprocess.run(
        [tool(program), *words], env=environment, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def wrong(shown: ShownCommand, printed: str) -> str:
    """What the page states and the command does not print, "" if it is all there."""
    first, *_ = printed.splitlines() or [""]
    if not shown.stated:
        return "no answer"
    head, *rest = shown.stated
    if ShownCommand("", (head,)).missing(first):
        return head
    return ShownCommand("", tuple(each for each in rest if each != "…")).missing(printed.partition("\n")[2])


def written(command: str, printed: str) -> str:
    """The block of a question, as the page shows it."""
    lines = [_VARYING.sub(lambda found: "…".ljust(len(found[0])), each) for each in printed.splitlines()]
    kept = [*lines[:SHOWN], *(["…"] if len(lines) > SHOWN else [])]
    return "\n".join([f"```console\n$ {command}", *kept, "```"])


def test_each_question_has_one_command_and_its_answer_in_the_first_line() -> None:
    """There are forty at least; the first line is a sentence, no heading of a table."""
    text = PAGE.read_text(encoding="utf-8")
    asked = questions(text)

    assert len(asked) >= 40
    assert len({question for question, _ in asked}) == len(asked)
    for question, below in asked:
        (shown,) = shown_commands(below)
        assert shown.stated, question
        assert shown.stated[0].upper() != shown.stated[0], f"{question}: a heading is no answer"


def test_an_answer_that_differs_is_found() -> None:
    shown = ShownCommand("x", ("2 pods wait", "POD   AGE", "a   …", "…"))

    assert wrong(shown, "2 pods wait\n\nPOD   AGE\na   3s\nb   4s\n") == ""
    assert wrong(shown, "POD   AGE\n2 pods wait\na   3s\n") == "2 pods wait"
    assert wrong(shown, "2 pods wait\nPOD   AGE\n") == "a   …"
    assert wrong(ShownCommand("x", ()), "2 pods wait\n") == "no answer"


@pytest.mark.e2e
def test_the_cluster_answers_as_the_page_says(
    tmp_path: Path, start_roadstead: StartRoadstead, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cluster = start_roadstead(server_only=True)
    load(cluster)
    text = PAGE.read_text(encoding="utf-8")
    for name, content in named_files(text).items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    found = {}
    for question, below in questions(text):
        (shown,) = shown_commands(below)
        printed = run(shown.command, cluster.kubeconfig)
        if os.environ.get("PLIMSOLL_WRITE_GOLDEN"):
            block = re.search(r"```console\n.*?```", below, re.DOTALL)
            assert block is not None
            text = text.replace(block[0], written(shown.command, printed), 1)
        elif missing := wrong(shown, printed):
            found[question] = f"{shown.command}\ndid not print\n{missing}\nbut\n{printed}"
    if os.environ.get("PLIMSOLL_WRITE_GOLDEN"):
        PAGE.write_text(text, encoding="utf-8")

    assert not found, "\n\n".join(found.values())
