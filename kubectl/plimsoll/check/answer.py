"""The machine-readable output of ``plimsoll check``."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from plimsoll.answers.answer import Answer, AnswerPart
from plimsoll.check.checks import Checked
from plimsoll.preflight.findings import Area, Certainty, Finding, Level, worst


class CheckFinding(AnswerPart):
    """One finding."""

    area: Area = Field(description="What was checked.")
    level: Level = Field(description="How bad it is.")
    subject: str = Field(description="The object that it is about.")
    message: str = Field(description="What was found, in a sentence.")
    remedy: str = Field(description="What to do; empty when there is nothing to do.")
    certainty: Certainty = Field(
        description="Whether it was seen, is concluded from names, or is open until later."
    )


class Check(Answer):
    """What ``plimsoll check`` found."""

    level: Level = Field(description="The worst level of all findings.")
    server: str = Field(description="Address of the API server.")
    version: str = Field(description="Version of the API server; empty when it did not answer.")
    user: str = Field(description="Who the server takes the caller for; empty when it does not say.")
    accounts: tuple[str, ...] = Field(
        description="The users whose rights were reviewed, one for each operator; empty when none was found."
    )
    errors: int = Field(description="Findings of level error.")
    warnings: int = Field(description="Findings of level warning.")
    findings: tuple[CheckFinding, ...] = Field(description="All findings, by area, the worst first.")
    grants: Mapping[str, Any] | None = Field(
        description="A List of roles and bindings that grants exactly the missing rights, for kubectl apply;"
        " absent when no right is missing."
    )


def check_answer(checked: Checked, *more: Finding) -> Check:
    """The output with the findings of a check, and further ones."""
    findings = (*checked.findings, *more)
    return Check(
        level=worst(findings),
        server=checked.server,
        version=checked.version,
        user=checked.user,
        accounts=checked.accounts,
        errors=sum(each.level is Level.ERROR for each in findings),
        warnings=sum(each.level is Level.WARNING for each in findings),
        findings=tuple(CheckFinding.model_validate(each, from_attributes=True) for each in findings),
        grants=checked.grants,
    )
