"""Amounts of resources as Kubernetes users write them: ``"500m"``, ``"1Gi"``, ``4``."""

from typing import Annotated, Any

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

QUANTITY = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
"""As upstream's definitions have it."""


class _QuantitySchema:
    """A number or a text in one step, so that an error names the field and not a branch of a union."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.union_schema(
            [core_schema.int_schema(strict=True), core_schema.str_schema(pattern=QUANTITY, strict=True)],
            mode="left_to_right",
            custom_error_type="quantity",
            custom_error_message='give an amount, as in "500m", "1Gi" or 4',
        )

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"x-kubernetes-int-or-string": True, "pattern": QUANTITY, "examples": ["500m", "1Gi", 4]}


Quantity = Annotated[int | str, _QuantitySchema()]

Amounts = Annotated[dict[str, Quantity], Field(max_length=64)]
"""Quantity by resource name."""
