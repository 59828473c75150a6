"""Findings of a check: level, sentence, remedy."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from plimsoll.access.rights import Right


class Level(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


class Certainty(StrEnum):
    """How sure a finding is: seen, or concluded from names."""

    CERTAIN = "certain"
    LIKELY = "likely"


class Area(StrEnum):
    """What was checked, in the order in which findings are shown."""

    SERVER = "server"
    DEFINITIONS = "definitions"
    NAMES = "names"
    LEASE = "lease"
    RIGHTS = "rights"
    POLICIES = "policies"
    SCHEDULERS = "schedulers"
    PODS = "pods"
    PORTS = "ports"


@dataclass(frozen=True, slots=True)
class Finding:
    """One result.

    Attributes:
        subject: The object that it is about, such as ``lease plimsoll/plimsoll``.
        remedy: What to do, "" when there is nothing to do.
    """

    area: Area
    level: Level
    subject: str
    message: str
    remedy: str = ""
    certainty: Certainty = Certainty.CERTAIN


@dataclass(frozen=True, slots=True)
class Unread:
    """A read that failed.

    Attributes:
        right: The right that it needs.
        namespace: Where it needs it; "" for everywhere.
        status: HTTP status; 0 without an answer.
        message: What the server said.
    """

    right: Right
    namespace: str
    status: int
    message: str

    @property
    def is_forbidden(self) -> bool:
        """Whether a right is missing."""
        return self.status == 403


def unchecked(area: Area, subject: str, unread: Unread) -> Finding:
    """What could not be read could not be checked."""
    where = f" in namespace {unread.namespace}" if unread.namespace else ""
    if unread.is_forbidden:
        message = f"not checked: you may not {unread.right.text}{where}"
        remedy = f"ask for the right to {unread.right.text}{where}, or let somebody run this who has it"
        return Finding(area, Level.WARNING, subject, message, remedy)
    why = unread.message or (f"status {unread.status}" if unread.status else "no answer")
    return Finding(
        area, Level.WARNING, subject, f"not checked: cannot {unread.right.text}{where}: {why}", "run it again"
    )


def worst(findings: Iterable[Finding]) -> Level:
    """The worst level; OK without findings."""
    order = list(Level)
    return max((each.level for each in findings), key=order.index, default=Level.OK)


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """By area, in each the worst first."""
    areas, levels = list(Area), list(Level)
    return tuple(sorted(findings, key=lambda each: (areas.index(each.area), -levels.index(each.level))))
