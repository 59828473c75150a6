"""The snapshot file: round trips, and files that are damaged or hostile."""

import gzip
import hashlib
import io
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from plimsoll.ports.usage import UsageReading
from plimsoll.snapshots import file
from plimsoll.snapshots.content import SnapshotContent, UsageContent
from plimsoll.snapshots.errors import SnapshotError
from plimsoll.snapshots.reader import read

CONTENT = SnapshotContent(
    taken=1_700_000_000.5,
    source="https://example.com",
    objects={
        "nodes": (b'{"metadata":{"name":"n1","uid":"u1"}}',),
        "pods": (
            b'{"metadata":{"name":"a","namespace":"x","uid":"u2"},"spec":{"nodeName":"n1"}}',
            b'{"metadata":{"name":"a","namespace":"y","uid":"u3"}}',
        ),
        "schedulingpolicies": (b'{"metadata":{"name":"p"},"spec":{"suspend":true}}',),
        "services": (),
    },
    usage=UsageContent((UsageReading("n1", {"cpu": 5}, 1.0),), (UsageReading("x/a", {"cpu": 1}, 2.0),)),
    missing={"csinodes": "forbidden: list csinodes.storage.k8s.io"},
)


def lines_of(content: SnapshotContent = CONTENT) -> list[bytes]:
    """The lines of the file of a content."""
    buffer = io.BytesIO()
    file.write(content, buffer)
    return gzip.decompress(buffer.getvalue()).splitlines(keepends=True)


def signed(lines: list[bytes]) -> bytes:
    """A file of these lines but the last, with a check sum that is right."""
    body = b"".join(lines[:-1])
    trailer = {"sha256": hashlib.sha256(body).hexdigest()}
    return gzip.compress(body + msgspec.json.encode(trailer) + b"\n")


def replaced(number: int, old: bytes, new: bytes) -> bytes:
    """The file with something else in one line, and a check sum that is right."""
    lines = lines_of()
    assert old in lines[number]
    return signed([*lines[:number], lines[number].replace(old, new), *lines[number + 1 :]])


def with_two_of_one_name() -> bytes:
    """Both pods in one namespace."""
    return replaced(3, b'"y"', b'"x"')


def test_what_is_saved_is_read_again(tmp_path: Path) -> None:
    """Objects, usage, and what was missing."""
    path = tmp_path / "cluster.json.gz"
    size = file.save(CONTENT, path)

    assert read([path]) == CONTENT
    assert size == path.stat().st_size
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_a_decompressed_snapshot_is_one_too(tmp_path: Path) -> None:
    """Somebody looked into it with gunzip."""
    path = tmp_path / "cluster.json"
    path.write_bytes(b"".join(lines_of()))

    assert read([path]) == CONTENT


def test_equal_contents_make_equal_files() -> None:
    """No time, no name and no order of a process in it."""
    assert lines_of() == lines_of()


def test_a_file_is_not_overwritten_unless_asked(tmp_path: Path) -> None:
    """The sentence says how."""
    path = tmp_path / "cluster.json.gz"
    path.write_text("mine")

    with pytest.raises(SnapshotError, match="--force"):
        file.save(CONTENT, path)

    assert path.read_text() == "mine"
    file.save(CONTENT, path, force=True)
    assert read([path]) == CONTENT


def test_an_interrupted_save_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while the file is written: the old one stays, and no part of the new one."""
    path = tmp_path / "cluster.json.gz"
    path.write_text("mine")

    def interrupted(plural: str, document: bytes) -> bytes:
        raise KeyboardInterrupt

    monkeypatch.setattr(file, "trimmed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        file.save(CONTENT, path, force=True)

    assert [each.name for each in tmp_path.iterdir()] == [path.name]
    assert path.read_text() == "mine"


def test_a_snapshot_is_for_its_owner_alone(tmp_path: Path) -> None:
    """Names and labels of a cluster are not for everybody on the machine."""
    path = tmp_path / "cluster.json.gz"
    file.save(CONTENT, path)

    assert path.stat().st_mode & 0o077 == 0


HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "empty": (lambda: b"", "it is empty"),
    "empty-gzip": (lambda: gzip.compress(b""), "it is empty"),
    "truncated-gzip": (lambda: signed(lines_of())[:-30], "truncated"),
    "truncated-line": (lambda: gzip.compress(b"".join(lines_of())[:-5]), "truncated"),
    "cut-after-a-line": (lambda: gzip.compress(b"".join(lines_of()[:-2])), "truncated"),
    "changed": (
        lambda: gzip.compress(b"".join(lines_of()).replace(b'"n1","uid"', b'"n2","uid"')),
        "check sum",
    ),
    "longer": (lambda: gzip.compress(b"".join(lines_of()) + b"{}\n"), "goes on after its end"),
    "damaged-gzip": (lambda: signed(lines_of())[:20] + b"\0" * 40, "cannot be decompressed"),
    "newer-version": (lambda: replaced(0, b'"version":1', b'"version":7'), "version 7"),
    "version-is-a-word": (lambda: replaced(0, b'"version":1', b'"version":"x"'), "line 1"),
    "negative-count": (lambda: replaced(0, b'"nodes":1', b'"nodes":-1'), "announces -1"),
    "unknown-collection": (lambda: replaced(0, b'"nodes"', b'"secrets"'), '"secrets"'),
    "many-announced": (lambda: replaced(0, b'"nodes":1', b'"nodes":999999999999'), "nodes"),
    "two-of-one-name": (with_two_of_one_name, "x/a, as an earlier one"),
    "path-as-name": (lambda: replaced(2, b'"a"', b'"../../etc"'), "no API server accepts"),
    "path-as-namespace": (lambda: replaced(2, b'"x"', b'".."'), "no API server accepts"),
    "escape-in-name": (lambda: replaced(2, b'"a"', b'"\\u001b[31m"'), "no API server accepts"),
    "no-name": (lambda: replaced(2, b'"name":"a",', b""), "no API server accepts"),
    "no-object": (lambda: signed([*lines_of()[:1], b"7\n", *lines_of()[2:]]), "no object"),
    "not-json": (lambda: signed([*lines_of()[:1], b"<xml/>\n", *lines_of()[2:]]), "no object"),
    "deeply-nested": (
        lambda: replaced(1, b'"n1"', b'"n1","x":' + b"[" * 200_000 + b"]" * 200_000),
        "object 1 of nodes",
    ),
    "not-utf8": (lambda: replaced(1, b'"n1"', b'"\xff"'), "object 1 of nodes"),
    "binary": (lambda: b"\x7fELF\0\0\0", "neither a snapshot nor JSON nor YAML"),
    "gzip-of-zeros": (lambda: gzip.compress(b"\0" * 10_000_000), "neither a snapshot nor JSON nor YAML"),
    "gzip-bomb-in-a-line": (
        lambda: gzip.compress(lines_of()[0] + b"[" + b" " * 20_000_000),
        "4 MiB in one line",
    ),
    "gzip-bomb-of-objects": (
        lambda: gzip.compress(
            lines_of()[0].replace(b'"nodes":1', b'"nodes":99999999')
            + b"".join(b'{"metadata":{"name":"n%d"}}%s\n' % (n, b" " * 200_000) for n in range(100))
        ),
        "more than 8 MiB",
    ),
    "gzip-bomb-of-json": (lambda: gzip.compress(b"[" + b" " * 20_000_000), "more than 8 MiB"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_files_end_in_one_sentence(tmp_path: Path, case: str) -> None:
    """Naming the file and what is wrong with it; nothing is executed, nothing is written."""
    make, said = HOSTILE[case]
    path = tmp_path / "evil.json.gz"
    path.write_bytes(make())

    with pytest.raises(SnapshotError) as caught:
        read([path], largest=8 * 2**20)

    assert str(caught.value).startswith(f"{path}: ")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_what_is_left_of_a_content_is_about_the_collections_that_are_left() -> None:
    """Why another one could not be read is of no interest then."""
    objects = {"pods": [b"{}"], "nodes": [b"{}"]}
    content = SnapshotContent(0.0, "here", objects, missing={"leases": "no right", "events": "not there"})

    left = content.limited_to(["pods", "leases"])

    assert dict(left.objects) == {"pods": [b"{}"]}
    assert dict(left.missing) == {"leases": "no right"}
    assert dict(content.missing) == {"leases": "no right", "events": "not there"}
