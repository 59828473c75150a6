"""Memory that is free, as control groups and the machine say it."""

from pathlib import Path

import pytest

from plimsoll.app.forks.memory_room import resident_bytes, room_bytes

MACHINE = {"proc/meminfo": "MemTotal: 9000 kB\nMemAvailable:    4000 kB\n"}
STAT = "anon 3\ninactive_file 50000\n"


@pytest.mark.parametrize(
    ("files", "room"),
    [
        pytest.param({}, None, id="nothing says"),
        pytest.param(MACHINE, 4000 * 1024, id="the machine"),
        pytest.param(
            # 1000000 - 400000 + 50000 of files that can be given up
            {"g/memory.max": "1000000\n", "g/memory.current": "400000\n", "g/memory.stat": STAT},
            650_000,
            id="version 2",
        ),
        pytest.param(
            {"g/memory/memory.limit_in_bytes": "900000", "g/memory/memory.usage_in_bytes": "900001"},
            0,
            id="version 1, full",
        ),
        pytest.param(
            {"g/memory.max": "max\n", "g/memory.current": "400000\n", **MACHINE}, 4000 * 1024, id="no limit"
        ),
        pytest.param(
            {"g/memory.max": "5000\n", "g/memory.current": "1000\n", **MACHINE}, 4000, id="the lesser of both"
        ),
    ],
)  # fmt: skip
def test_room(files: dict[str, str], room: int | None, tmp_path: Path) -> None:
    """What the limit leaves, and what the machine has; files that are not used make room."""
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    assert room_bytes(tmp_path / "g", tmp_path / "proc") == room


def test_this_process_has_memory() -> None:
    """By its own account; a process that is not described has none."""
    assert resident_bytes() > 2**20
    assert resident_bytes(Path("/nowhere")) == 0
