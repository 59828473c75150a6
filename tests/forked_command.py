"""Stands on the PATH of tests in place of ``python``, ``plimsoll`` and ``roadstead``, and has them forked.

The nursery (tests/forked.py) puts symbolic links to this file into a folder; the name of the link is the
command. This program sends its arguments, folder, environment and standard streams to the nursery, which
forks the command; it passes signals on, waits, and ends as the command has ended. It imports next to nothing,
since its own start is the greater part of what a command costs.
"""

import _signal as signal  # type: ignore[import-not-found] # the module without its enumerations
import _socket as socket
import os
import select
import sys

FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def asked(line: socket.socket, request: dict[str, object]) -> int:
    """The answer to a request; it is framed as by ``multiprocessing.connection``."""
    content = ascii(request).encode()
    line.send(len(content).to_bytes(4, "big"))
    while content:
        content = content[line.send(content) :]
    if "folder" in request:
        streams = b"".join(each.to_bytes(4, sys.byteorder) for each in range(3))
        line.sendmsg([b"\0"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)])
    answer = line.recv(int.from_bytes(line.recv(4, socket.MSG_WAITALL), "big"), socket.MSG_WAITALL)
    return int(answer)


def main() -> None:
    """Have the command run."""
    folder, name = os.path.split(sys.argv[0])
    line = socket.socket(socket.AF_UNIX)
    line.connect(f"{folder}/../socket")
    request: dict[str, object] = {
        "args": [name, *sys.argv[1:]],
        "folder": os.getcwd(),  # noqa: PTH109 - pathlib takes as long to import as this runs
        "environment": dict(os.environ),
    }
    child = asked(line, request)
    handle = os.pidfd_open(child)
    for number in FORWARDED:
        signal.signal(number, lambda number, _: os.kill(child, number))
    select.select([handle], [], [])
    status = asked(line, {"ended": child})
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


if __name__ == "__main__":
    main()
