"""The error boundary: one line on stderr and an exit code, for all commands that speak to a server."""

from __future__ import annotations

import gzip
import inspect
import io
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from cli.commands import WORDS, Said, paths, say
from cli.refusing_server import kubeconfig_of, refusing_server
from plimsoll.commands.errors import ExitCode, UserError, guarded
from plimsoll.commands.options import Flag
from plimsoll.snapshots.content import SnapshotContent, UsageContent
from plimsoll.snapshots.file import LONGEST_LINE, MAGIC, write

SPEAKING = [
    pytest.param((*words, *WORDS.get(" ".join(words), ())), id="-".join(words))
    for words, verb in paths()
    if verb is not None and Flag.CONTEXT in verb.flags
]

#: Commands that answer from pods and nodes alone.
WITHOUT_POLICIES = (("explain", "pod"), ("explain", "podgroup"), ("explain", "node"))

every_command = pytest.mark.parametrize("words", SPEAKING)

#: All but ``check``, whose findings these are.
every_other_command = pytest.mark.parametrize("words", [each for each in SPEAKING if each.id != "check"])


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A server that refuses, each way below a path of its own."""
    with refusing_server() as one:
        yield one


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that writes a file writes it here."""
    monkeypatch.chdir(tmp_path)


def error(said: Said) -> str:
    """The one line that a command has said."""
    assert said.code == ExitCode.FAILED, said
    assert said.out == ""
    assert said.err.startswith("error: "), said.err
    assert said.err.count("\n") == 1, said.err
    return said.err.removeprefix("error: ").rstrip("\n")


def test_a_kind_that_does_not_exist_is_named_as_it_was_given() -> None:
    """With the name after the slash."""
    assert "'nope/web'" in say("explain", "nope/web").err


@every_command
def test_a_kubeconfig_that_is_missing_is_named(words: tuple[str, ...], tmp_path: Path) -> None:
    said = error(say(*words, "--kubeconfig", str(tmp_path / "config")))
    assert said == f"reading {tmp_path / 'config'}: no usable configuration: there is no such file"


def test_kubeconfigs_that_say_nothing_are_named_with_what_to_do(tmp_path: Path) -> None:
    """As an argument and in the environment: nothing in it, a folder, no context, and none chosen."""
    cluster = "apiVersion: v1\nkind: Config\nclusters: [{name: a, cluster: {server: 'http://127.0.0.1:9'}}]\n"
    files = {"empty": "", "half": cluster, "none": f"{cluster}contexts: []\n"}
    files["other half"] = "apiVersion: v1\nkind: Config\ncontexts: []\n"
    files["unchosen"] = f"{cluster}contexts: [{{name: a, context: {{cluster: a}}}}]\n"
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    said = {
        "/dev/null": "it is empty",
        str(tmp_path / "empty"): "it is empty",
        str(tmp_path / "half"): "this is not a kubeconfig: it has no lists of clusters and contexts",
        str(tmp_path / "other half"): "this is not a kubeconfig: it has no lists of clusters and contexts",
        str(tmp_path): "it is a folder; name a file in it",
        f"{tmp_path / 'missing'}:": "there is no such file",
        str(tmp_path / "none"): "it has no context; add one with kubectl config set-context",
        str(tmp_path / "unchosen"): "it has no current-context; choose one with --context: a",
    }

    for path, problem in said.items():
        expected = f"reading {path}: no usable configuration: {problem}"
        assert error(say("check", "--kubeconfig", path)) == expected
        assert error(say("check", KUBECONFIG=path)) == expected


@every_command
def test_a_file_that_is_no_kubeconfig_is_named(words: tuple[str, ...], tmp_path: Path) -> None:
    file = tmp_path / "config"
    for content in ("kind: Pod\n", "{"):
        file.write_text(content)
        assert error(say(*words, "--kubeconfig", str(file))).startswith(f"reading {file}: ")


@pytest.mark.parametrize("content", ["\x00\xff", "[" * 1_000], ids=["binary", "deep"])
def test_a_hostile_file_is_no_kubeconfig(content: str, tmp_path: Path) -> None:
    """All commands have the same reader, which takes a while for a deep file."""
    file = tmp_path / "config"
    file.write_text(content)
    assert error(say("check", "--kubeconfig", str(file))).startswith(f"reading {file}: ")


@every_command
def test_a_context_that_is_missing_is_named(words: tuple[str, ...], tmp_path: Path) -> None:
    file = kubeconfig_of(tmp_path / "config", "http://127.0.0.1:1")
    said = error(say(*words, "--kubeconfig", str(file), "--context", "there"))
    assert 'context "there" does not exist; it has here' in said


@every_command
def test_a_server_that_does_not_answer_is_named(words: tuple[str, ...], tmp_path: Path) -> None:
    file = kubeconfig_of(tmp_path / "config", "http://127.0.0.1:1")
    said = error(say(*words, "--kubeconfig", str(file)))
    assert said.startswith("no answer from http://127.0.0.1:1: ")


@every_command
def test_credentials_that_have_expired_are_said_so(words: tuple[str, ...], url: str, tmp_path: Path) -> None:
    file = kubeconfig_of(tmp_path / "config", f"{url}/unauthorized")
    said = error(say(*words, "--kubeconfig", str(file)))
    assert said.startswith(f"{url}/unauthorized does not accept the credentials: ")


@every_other_command
def test_the_missing_right_is_named(words: tuple[str, ...], url: str, tmp_path: Path) -> None:
    """In the API server's words: verb, resource, group and namespace."""
    file = kubeconfig_of(tmp_path / "config", f"{url}/forbidden")
    said = error(say(*words, "--kubeconfig", str(file)))
    assert 'is forbidden: User "jane" cannot ' in said
    assert said.endswith("; grant that right, or use other credentials")


#: They answer about any cluster, with the policies that it has.
TOP = {"top-namespaces", "top-nodes", "top-pods", "top-queues", "top-racks"}
ANYWHERE = {"check", "fit", "snapshot-save", "whatif", *TOP}


@pytest.mark.parametrize("words", [each for each in SPEAKING if each.id not in ANYWHERE])
def test_a_server_without_the_definitions_is_said_so(
    words: tuple[str, ...], url: str, tmp_path: Path
) -> None:
    file = kubeconfig_of(tmp_path / "config", f"{url}/bare")
    said = error(say(*words, "--kubeconfig", str(file)))
    if words[:2] in WITHOUT_POLICIES:
        assert said.endswith("not found")
        return
    assert said.startswith(f"{url}/bare does not serve ")
    assert "plimsoll crds | kubectl apply --server-side -f -" in said


@pytest.mark.parametrize(
    "words", [("nonsense",), ("--nonsense",), ("approve", "--nonsense"), ("approve", "-n")]
)
def test_wrong_usage_is_one_line_too(words: tuple[str, ...]) -> None:
    """With kubectl's exit code: 2 means that something was found."""
    assert error(say(*words)).endswith("; see --help")


@pytest.fixture(scope="module")
def broken_files() -> dict[str, bytes]:
    """Snapshot files that cannot be read, by what is wrong with them; tests/snapshots has more."""
    file = io.BytesIO()
    write(SnapshotContent(taken=0.0, source="a test", objects={}, usage=UsageContent(), missing={}), file)
    lines = gzip.decompress(file.getvalue())
    return {
        "truncated": file.getvalue()[:-20],
        "half": gzip.compress(lines[: len(lines) // 2]),
        "wrong version": gzip.compress(lines.replace(b'"version":1', b'"version":99')),
        "huge": gzip.compress(MAGIC + b" " * LONGEST_LINE),
        "deep": b"[" * 100_000,
        "binary": b"\x7fELF\0\0",
    }


READING = [
    pytest.param((*words, *WORDS.get(" ".join(words), ())), id="-".join(words))
    for words, verb in paths()
    if verb is not None and "from_" in inspect.signature(verb.run).parameters
]


@pytest.mark.parametrize("words", READING)
def test_a_file_that_is_no_snapshot_is_named(
    words: tuple[str, ...], broken_files: dict[str, bytes], tmp_path: Path
) -> None:
    """Missing, truncated, huge, of a wrong version or hostile: in one line."""
    file = tmp_path / "given.json.gz"
    assert str(file) in error(say(*words, "--from", str(file)))
    for content in broken_files.values():
        file.write_bytes(content)
        assert str(file) in error(say(*words, "--from", str(file)))


class Model(BaseModel):
    """A document."""

    count: int
    name: str


def _invalid() -> None:
    Model.model_validate({"count": []})


def _missing() -> None:
    Path("/missing/file").read_bytes()


def _refused() -> None:
    raise UserError("a\n  b \x1b[31m", ExitCode.FOUND)


def _interrupted() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("run", "code", "said"),
    [
        (
            _invalid,
            1,
            "count: Input should be a valid integer; name: Field required",
        ),
        (_missing, 1, "/missing/file: No such file or directory"),
        (_refused, 2, "a b \\x1b[31m"),
        (_interrupted, 130, "interrupted"),
    ],
)
def test_what_is_caught_has_a_sentence_and_a_code(
    run: object, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert guarded(run) == code  # type: ignore[arg-type] # one of the functions above
    assert capsys.readouterr().err == f"error: {said}\n"


def test_a_fault_of_ours_keeps_its_traceback() -> None:
    """It is to be reported, not read as the user's."""
    with pytest.raises(ZeroDivisionError):
        guarded(lambda: 1 // 0)


def test_a_reader_that_leaves_ends_the_command_silently(tmp_path: Path) -> None:
    """As in ``plimsoll … | head -1``."""
    script = (
        "import sys\n"
        "from plimsoll.commands.errors import guarded\n"
        "sys.exit(guarded(lambda: sys.stdout.writelines('line\\n' * 5000 for _ in range(500))))"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"line\n"
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(20) == ExitCode.PIPE_CLOSED


def test_what_is_written_after_the_reader_has_left_goes_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The interpreter flushes its output once more."""

    def leaves() -> None:
        raise BrokenPipeError

    with (tmp_path / "output").open("w") as output:
        monkeypatch.setattr("sys.stdout", output)
        assert guarded(leaves) == ExitCode.PIPE_CLOSED
        output.write("more")

    assert (tmp_path / "output").read_text() == ""
