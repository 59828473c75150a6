"""Findings of a check: level, sentence, remedy."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from plimsoll.access.rights import Right, listed


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


def unchecked(area: Area, subject: str, *unread: Unread) -> Finding:
    """What could not be read could not be checked; where reads failed in several ways, the first is said."""
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
    """By area, in each the worst first."""
    areas, levels = list(Area), list(Level)
    return tuple(sorted(findings, key=lambda each: (areas.index(each.area), -levels.index(each.level))))
