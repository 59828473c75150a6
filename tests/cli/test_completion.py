"""Completion: verbs, flags and formats from the commands, names from a cluster, in cobra's protocol."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cli.commands import say
from cli.refusing_server import kubeconfig_of
from plimsoll.cli import completion
from plimsoll.cli.commands.installation.completion import SCRIPTS
from plimsoll.commands.program import app
from roadstead.clients import RunningCluster


def completed(*words: str) -> tuple[list[str], bool]:
    """The candidates, and whether files are."""
    found, is_file = completion.candidates(app, words)
    return [name for name, _ in found], is_file


def test_verbs_are_completed_with_their_summaries() -> None:
    assert completed("res") == (["resume"], False)
    assert completed("explain", "") == (["pod", "podgroup", "node", "policy", "eviction"], False)
    assert completed("-n", "shop", "explain", "po") == (["pod", "podgroup", "policy"], False)
    assert completion.candidates(app, ["pau"])[0] == [
        ("pause", "Stop the moves of all policies, or suspend policies.")
    ]


def test_flags_and_their_values_are_completed(tmp_path: Path) -> None:
    assert completed("approve", "--all") == (["--all", "--all-namespaces"], False)
    assert completed("explain", "pod", "-o", "") == (
        ["table", "wide", "json", "yaml", "jsonpath=", "name"],
        False,
    )
    assert completed("history", "--color", "a") == (["auto", "always"], False)
    assert completed("explain", "pod", "web", "--output=json", "-o", "j") == (["json", "jsonpath="], False)
    file = kubeconfig_of(tmp_path / "config", "http://127.0.0.1:1")
    assert completed("pause", "--kubeconfig", str(file), "--context", "") == (["here"], False)
    assert completed("pause", "--kubeconfig", "") == ([], True)
    assert completed("pause", "--reason", "") == ([], False)


@pytest.mark.parametrize(
    ("words", "path", "given", "pending"),
    [
        (("explain", "pod"), ("explain", "pod"), {}, ""),
        (("explain", "-n", "pod", "pod"), ("explain", "pod"), {"--namespace": "pod"}, ""),
        (("explain", "--namespace=pod", "node"), ("explain", "node"), {"--namespace": "pod"}, ""),
        (("approve", "--all"), ("approve",), {"--all": "true"}, ""),
        (("approve", "--nonsense", "-n"), ("approve",), {}, "--namespace"),
        (("approve", "-n", "--all"), ("approve",), {"--namespace": "--all"}, ""),
        (("approve", "approve", "x"), ("approve",), {}, ""),
        (("--context", "", "approve"), ("approve",), {"--context": ""}, ""),
    ],
)
def test_words_before_the_last_are_read(
    words: tuple[str, ...], path: tuple[str, ...], given: dict[str, str], pending: str
) -> None:
    line = completion.CommandLine(app)
    for word in words:
        line.read(word)
    assert (line.path, line.given, line.pending) == (path, given, pending)


def test_flags_of_a_command_line_are_its_options(tmp_path: Path) -> None:
    """A format that is no table does not matter to names, nor do flags of the command itself."""
    given = {"--output": "json", "--kubeconfig": str(tmp_path), "--all": "true", "--namespace": "shop"}
    found = completion._options(given)

    assert (found.output, found.kubeconfig, found.namespace) == ("table", tmp_path, "shop")


def test_a_cluster_that_does_not_answer_names_nothing(tmp_path: Path) -> None:
    """Nor does it disturb the command line with an error."""
    file = kubeconfig_of(tmp_path / "config", "http://127.0.0.1:1")
    assert completed("--kubeconfig", str(file), "pause", "") == ([], False)
    assert completed("--kubeconfig", str(tmp_path / "missing"), "explain", "node", "") == ([], False)


def test_names_come_from_the_cluster(roadstead_process: RunningCluster) -> None:
    """Pods in the namespace of the flags or of the word."""
    given = ("--kubeconfig", str(roadstead_process.kubeconfig))
    container = {"name": "main", "image": "i"}
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [container], "nodeName": "none"}}
    roadstead_process.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "completing"}})
    roadstead_process.apply({**pod, "metadata": {"name": "web-1", "namespace": "completing"}})

    assert completed(*given, "explain", "pod", "-n", "completing", "w") == (["web-1"], False)
    assert completed(*given, "explain", "pod", "completing/w") == (["completing/web-1"], False)
    assert completed(*given, "explain", "pod", "-n", "comp") == (["completing"], False)
    assert completed(*given, "explain", "node", "")[0]
    assert completed(*given, "whatif", "--drain", "") == completed(*given, "explain", "node", "")
    roadstead_process.delete("namespaces/completing")


def test_the_program_speaks_cobras_protocol(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["kubectl_complete-plimsoll", "explain", "e"])
    completion.main()
    text = "Explain a move by its Eviction record: from where, to where, when, why, and how it ended."
    assert capsys.readouterr().out == f"eviction\t{text}\n:4\n"


@pytest.mark.parametrize("shell", SCRIPTS)
def test_scripts_are_printed_and_are_scripts(shell: str) -> None:
    """Of each shell that is installed."""
    script = say("completion", str(shell)).out
    assert "kubectl_complete-plimsoll" in script
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=script, text=True, check=True)


def test_bash_completes_with_the_script(tmp_path: Path) -> None:
    """As readline would call it: candidates without descriptions."""
    program = tmp_path / "kubectl_complete-plimsoll"
    program.write_text('#!/bin/sh\nprintf "%s\\\\tdescription\\\\n" "$#" "$2"\necho :4\n')
    program.chmod(0o755)
    script = say("completion", "bash").out
    call = 'COMP_WORDS=(plimsoll explain "po"); COMP_CWORD=2; _plimsoll; echo "${COMPREPLY[@]}"'

    done = subprocess.run(
        ["bash", "-c", script + call],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "2 po\n"
    assert done.stderr == ""
