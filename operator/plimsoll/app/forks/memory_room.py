"""The memory that this process may still use, according to its container's limit and its machine (Linux).

A fork shares its memory with its parent until one of them writes to it, and counting references is writing.
So a child may eventually need as much memory again as the process has.
"""

from pathlib import Path

#: The files with the limits of the process's control group: version 2, then version 1.
GROUPS = (
    ("memory.max", "memory.current", "inactive_file "),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "total_inactive_file "),
)

#: Where a container sees its control group, and where the kernel describes processes and the machine.
CONTROL_GROUP, PROCESSES = Path("/sys/fs/cgroup"), Path("/proc")


def room_bytes(group: Path = CONTROL_GROUP, processes: Path = PROCESSES) -> int | None:
    """Free bytes; None if unknown."""
    free = [each for each in (_group_room(group), _amount(processes / "meminfo", "MemAvailable:")) if each]
    return min((each[0] for each in free), default=None)


def resident_bytes(processes: Path = PROCESSES) -> int:
    """Resident bytes of this process; 0 if unknown."""
    found = _amount(processes / "self/status", "VmRSS:")
    return found[0] if found else 0


def _group_room(group: Path) -> tuple[int] | None:
    for limit, used, cached in GROUPS:
        try:
            most, taken = (int((group / name).read_text(encoding="ascii")) for name in (limit, used))
        except (OSError, ValueError):  # the file is missing, or has "max"
            continue
        # Inactive pages of files are reclaimed before any process is killed.
        given_up = _amount((group / used).parent / "memory.stat", cached)
        return (max(0, most - taken + (given_up[0] if given_up else 0)),)
    return None


def _amount(file: Path, name: str) -> tuple[int] | None:
    """An amount in bytes from a line such as ``VmRSS:  12 kB``; in a tuple, because 0 is an amount too."""
    try:
        lines = file.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith(name):
            amount, *unit = line.removeprefix(name).split()
            return (int(amount) * (1024 if unit == ["kB"] else 1),)
    return None
