"""Lets a synchronous request depend on answers from outside the process: those of webhooks.

A request that needs an answer raises ``Unanswered`` before it has changed anything. Who has called it asks,
keeps the answer in its ``Progress``, and calls it again; the second run reads the objects of its own
moment. An answer counts for an equal question only, so what is committed is what was judged, and other writes
go on in the meantime (docs/adr/0053).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from roadstead.values.resources import Obj

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Question:
    """A call of a webhook.

    Attributes:
        url: without parameters.
        port: where the server listens on loopback; 0: where the URL says.
        ca_bundle: certificates in base64 that the server's is verified by; "": those of the system.
        timeout_s: seconds in which to answer.
        version: of the review, "v1" or "v1beta1".
        mutating: whether the answer may have a patch.
        request: what the review asks, as JSON, without its uid.
        review: "AdmissionReview" or "ConversionReview".
        is_again: whether the webhook has judged the write before, and is asked once more.
    """

    url: str
    port: int
    ca_bundle: str
    timeout_s: int
    version: str
    mutating: bool
    request: bytes
    review: str = "AdmissionReview"
    is_again: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """The ``response`` of a review, or the reason why it cannot be used."""

    response: Obj
    fault: str = ""


class Unanswered(Exception):
    """A request waits for answers; not an error, it goes on with them."""

    def __init__(self, questions: Sequence[Question]) -> None:
        super().__init__("a request waits for webhooks")
        self.questions = questions


@dataclass(slots=True)
class Progress:
    """What earlier runs of a request have learnt, for its next one.

    Attributes:
        answers: of webhooks.
        selected: the objects of a deletion of several, and those of them that are left, in reverse.
    """

    answers: dict[Question, Answer] = field(default_factory=dict)
    selected: tuple[list[Obj], list[Obj]] | None = None
    _drawn: dict[str, Any] = field(default_factory=dict)

    def once(self, name: str, draw: Callable[[], Value]) -> Value:
        """What the first run has drawn by this name: a uid, a generated name, the time."""
        if name not in self._drawn:
            self._drawn[name] = draw()
        value: Value = self._drawn[name]
        return value

    def answered(self, questions: Sequence[Question]) -> list[Answer]:
        """The answers to questions.

        Raises:
            Unanswered: some are missing.
        """
        missing = [one for one in questions if one not in self.answers]
        if missing:
            raise Unanswered(missing)
        return [self.answers[one] for one in questions]

    def committed(self) -> None:
        """Begin again: the write is done, and its sender may make another."""
        self.answers.clear()
        self._drawn.clear()
