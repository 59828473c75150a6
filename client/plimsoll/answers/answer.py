"""Answer is the base class of commands' answers; ``-o json`` and ``-o yaml`` print it unchanged."""

from typing import Any

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

#: The version of all answers; a field is removed or changes its meaning only with a new version.
API_VERSION = "cli.plimsoll.dev/v1alpha1"


class AnswerPart(BaseModel):
    """A part of an answer."""

    model_config = ConfigDict(
        defer_build=True, frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True
    )


class Answer(AnswerPart):
    """The answer of a command; the name of the class is its kind."""

    def document(self) -> dict[str, Any]:
        """The answer as a JSON object."""
        return {
            "apiVersion": API_VERSION,
            "kind": type(self).__name__,
            **self.model_dump(mode="json", by_alias=True),
        }
