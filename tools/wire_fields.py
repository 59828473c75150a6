"""Writes the table of Kubernetes' messages in Protocol Buffers that roadstead serves.

Usage: ``python tools/wire_fields.py SOURCE`` with the folder of Kubernetes' source (its ``staging`` is read):
``generated.proto`` has the numbers and types of fields, ``types*.go`` their names in JSON and which zeros are
omitted. The numbers are facts of the wire format; no text of Kubernetes is copied.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

TABLE = Path(__file__).parent.parent / "devcluster/src/roadstead/server/bodies/wire_fields.txt"
HEADER = """\
# Messages of Kubernetes v1.36 in Protocol Buffers, written by tools/wire_fields.py; do not edit.
# A message, then its fields: number:name:type. [] is a list, {} a map by strings. Before a name, "~" is a
# part that JSON has inline; after it, "?" is a field that JSON omits when it is zero.
# Source: the numbers are those of generated.proto in github.com/kubernetes/kubernetes (Apache License 2.0).
"""
PACKAGES = (
    *("admissionregistration/v1", "apps/v1", "authentication/v1", "authorization/v1", "autoscaling/v1"),
    *("autoscaling/v2", "batch/v1", "certificates/v1", "coordination/v1", "core/v1", "discovery/v1"),
    *("events/v1", "flowcontrol/v1", "networking/v1", "node/v1", "policy/v1", "rbac/v1", "resource/v1"),
    *("scheduling/v1", "storage/v1"),
)
FOLDERS = (
    *(f"api/{package}" for package in PACKAGES),
    "apimachinery/pkg/apis/meta/v1",
    "apiextensions-apiserver/pkg/apis/apiextensions/v1",
)
_LEAVES = ("IntOrString", "Quantity", "RawExtension", "Time", "MicroTime", "FieldsV1", "JSON")
_FIELD = re.compile(
    r"^ +(?:(optional|repeated) )?(map<string, ?(?P<value>[\w.]+)>|[\w.]+) (\w+) = (\d+);", re.MULTILINE
)
_GO = re.compile(
    r"^\s+(?:\w+\s+)?(?P<type>[*\[\]\w.]+)\s+`json:\"(?P<json>[^\"]*)\"[^`]*protobuf:\"\w+,(?P<number>\d+)",
    re.MULTILINE,
)


def short(name: str, package: str) -> str:
    """A message's name in the table, such as "core.v1.Pod"."""
    whole = name.removeprefix(".") if "." in name else f"{package}.{name}"
    leaf = whole.rpartition(".")[2]
    return leaf if leaf in _LEAVES else ".".join(whole.split(".")[-3:])


def go_fields(folder: Path) -> dict[tuple[str, int], tuple[str, bool, bool]]:
    """By type and number: the name in JSON, whether it is inline, and whether a zero is omitted."""
    found = {}
    for path in sorted(folder.glob("*.go")):
        if path.name.startswith("zz_") or "generated" in path.name:
            continue
        for struct in re.finditer(
            r"^type (\w+) struct \{$(.*?)^\}", path.read_text("utf-8"), re.MULTILINE | re.DOTALL
        ):
            for field in _GO.finditer(struct[2]):
                name, _, options = field["json"].partition(",")
                is_zero = "omitempty" in options and not field["type"].startswith("*")
                found[struct[1], int(field["number"])] = (name, "inline" in options, is_zero)
    return found


def lines(folder: Path) -> list[str]:
    """The messages of one package."""
    text = (folder / "generated.proto").read_text("utf-8")
    found = re.search(r"^package (.*);", text, re.MULTILINE)
    assert found is not None
    package, known, made = found[1], go_fields(folder), []
    for message in re.finditer(r"^message (\w+) \{$(.*?)^\}", text, re.MULTILINE | re.DOTALL):
        name = message[1]
        if name in _LEAVES:
            continue
        parts = []
        for field in _FIELD.finditer(message[2]):
            many, kind, wire, number = field[1], field[2], field[4], int(field[5])
            kind = field["value"] or kind
            if kind not in ("string", "bytes", "bool", "double", "int32", "int64"):
                kind = short(kind, package)
            kind = f"{{}}{kind}" if field["value"] else f"[]{kind}" if many == "repeated" else kind
            json, is_inline, is_zero = known.get((name, number), (wire, False, False))
            parts.append(f"{number}:{'~' if is_inline else ''}{json or wire}{'?' if is_zero else ''}:{kind}")
        made.append(" ".join([short(name, package), *parts]))
    return made


def main() -> None:
    """Write the table."""
    staging = Path(sys.argv[1]) / "staging/src/k8s.io"
    found = [line for folder in FOLDERS for line in lines(staging / folder)]
    TABLE.write_text(HEADER + "\n".join(sorted(found)) + "\n", "utf-8")


if __name__ == "__main__":
    main()
