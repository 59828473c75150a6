"""Checks whether ports can be listened on; the operator's start uses the same error messages."""

import errno
import socket
from collections.abc import Iterator

from plimsoll.preflight.findings import Area, Finding, Level

#: The remedy if a port cannot be listened on.
REMEDY = "choose another --metrics-port, --health-port or --bind-address"


def obstacle(exc: OSError) -> str:
    """Why a port cannot be listened on."""
    return "another process listens there" if exc.errno == errno.EADDRINUSE else exc.strerror or str(exc)


def judged_ports(address: str, ports: dict[str, int]) -> Iterator[Finding]:
    """Findings about ports of this machine, by their purpose; 0 is any port, and always free."""
    for purpose, port in ports.items():
        subject = f"port {address}:{port}"
        try:
            _listen(address, port)
        except OSError as exc:
            message = f"{purpose} cannot be served: {obstacle(exc)}"
            yield Finding(Area.PORTS, Level.ERROR, subject, message, REMEDY)
        else:
            yield Finding(Area.PORTS, Level.OK, subject, f"{purpose} can be served")


def _listen(address: str, port: int) -> None:
    """Listen briefly on a port.

    Raises:
        OSError: The port cannot be listened on.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, port), family=family, reuse_port=False):
        pass
