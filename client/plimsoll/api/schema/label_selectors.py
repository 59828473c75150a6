"""Label selectors, as in ``metav1.LabelSelector``: both parts must match, an empty one matches all."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from plimsoll.api.schema.fields import LabelKey, LabelValue
from plimsoll.api.schema.resource import Resource
from plimsoll.api.schema.rules import Rule
from plimsoll.model.decoding import convert
from plimsoll.model.selectors import EVERYTHING, LabelSelector, Selector, compile_selector


class SelectorOperator(StrEnum):
    """How a label's value relates to the values."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


class LabelSelectorRequirementSpec(Resource):
    """A condition on one label."""

    rules = (
        Rule(
            cel="self.operator in ['In', 'NotIn'] ? has(self.values) && size(self.values) > 0"
            " : !has(self.values) || size(self.values) == 0",
            holds=lambda self: (
                bool(self.values) == (self.operator in {SelectorOperator.IN, SelectorOperator.NOT_IN})
            ),
            message="In and NotIn need at least one value; Exists and DoesNotExist take none",
            field="values",
        ),
    )

    key: LabelKey = Field(description="Key of the label that the requirement is about.")
    operator: SelectorOperator = Field(description="How the label relates to the values.")
    values: Annotated[tuple[LabelValue, ...], Field(max_length=256)] = Field(
        default=(), description="Values for In and NotIn."
    )


class LabelSelectorSpec(Resource):
    """Selects objects by their labels; every condition must hold, and no condition selects all."""

    match_labels: Annotated[dict[LabelKey, LabelValue], Field(max_length=64)] = Field(
        default={}, description="Labels that must have exactly these values."
    )
    match_expressions: Annotated[tuple[LabelSelectorRequirementSpec, ...], Field(max_length=64)] = Field(
        default=(), description="Further conditions on labels."
    )


def compiled(given: LabelSelectorSpec | None) -> Selector:
    """A selector in the form that is asked; everything matches None.

    Raises:
        SelectorError: It cannot be evaluated.
        msgspec.MsgspecError: It has a value of a wrong type.
    """
    if given is None:
        return EVERYTHING
    document = given.model_dump(mode="json", by_alias=True, exclude_none=True)
    return compile_selector(convert(LabelSelector, document))
