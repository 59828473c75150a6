"""Findings of a check: level, sentence, remedy."""

from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct

from plimsoll.access.rights import Right, listed


class Level(StrEnum):
    """The severity of a finding."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


class Certainty(StrEnum):
    """The certainty of a finding: observed, concluded from names, or open until more time has passed."""

    CERTAIN = "certain"
    LIKELY = "likely"
    OPEN = "open"


class Area(StrEnum):
    """The checked areas, in the order in which findings are shown."""

    SERVER = "server"
    DEFINITIONS = "definitions"
    NAMES = "names"
    LEASE = "lease"
    RIGHTS = "rights"
    POLICIES = "policies"
    SCHEDULERS = "schedulers"
    PODS = "pods"
    KEYS = "keys"
    PORTS = "ports"


class Finding(Struct, frozen=True):
    """One result.

    Attributes:
        subject: The object concerned, such as ``lease plimsoll/plimsoll``.
        remedy: The remedy, "" if nothing has to be done.
    """

    area: Area
    level: Level
    subject: str
    message: str
    remedy: str = ""
    certainty: Certainty = Certainty.CERTAIN


class Unread(Struct, frozen=True):
    """A read that failed.

    Attributes:
        right: The right that the read needs.
        namespace: The namespace in which it needs the right; "" for all.
        status: HTTP status; 0 without a response.
        message: The server's message.
    """

    right: Right
    namespace: str
    status: int
    message: str

    @property
    def is_forbidden(self) -> bool:
        """Whether the read failed because of a missing right."""
        return self.status == 403


def unchecked(area: Area, subject: str, *unread: Unread) -> Finding:
    """A finding that something was not checked; of several reasons it reports the first."""
    first = unread[0]
    rights = list(dict.fromkeys(each.right for each in unread if each.status == first.status))
    where = f" in namespace {first.namespace}" if first.namespace and len(rights) == 1 else ""
    if first.is_forbidden:
        message = f"not checked: you may not {listed(rights)}{where}"
        return Finding(
            area, Level.WARNING, subject, message, "ask for the right, or let somebody run it who has it"
        )
    why = first.message or (f"status {first.status}" if first.status else "no answer")
    return Finding(
        area, Level.WARNING, subject, f"not checked: cannot {listed(rights)}{where}: {why}", "run it again"
    )


def worst(findings: Iterable[Finding]) -> Level:
    """The worst level; OK without findings."""
    order = list(Level)
    return max((each.level for each in findings), key=order.index, default=Level.OK)


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Findings sorted by area, in each the worst first."""
    areas, levels = list(Area), list(Level)
    return tuple(sorted(findings, key=lambda each: (areas.index(each.area), -levels.index(each.level))))
