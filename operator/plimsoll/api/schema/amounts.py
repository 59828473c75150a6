"""Ceilings written as a number of pods or as a share of them (``5`` or ``"10%"``)."""

from typing import Annotated, Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

PERCENT = r"^(100|[1-9]?[0-9])%$"
MAX_COUNT = 2**31 - 1


class _CountOrPercentSchema:
    """Both forms in one step, so that an error names the field and not a branch of a union."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        count = core_schema.int_schema(ge=0, le=MAX_COUNT, strict=True)
        share = core_schema.str_schema(pattern=PERCENT, strict=True)
        return core_schema.union_schema(
            [count, share],
            mode="left_to_right",
            custom_error_type="count_or_percent",
            custom_error_message='give a number of pods or a share, as in "10%"',
        )

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {
            "x-kubernetes-int-or-string": True,
            "minimum": 0,
            "maximum": MAX_COUNT,
            "pattern": PERCENT,
            "examples": [5, "10%"],
        }


CountOrPercent = Annotated[int | str, _CountOrPercentSchema()]


def ceiling(amount: int | str, of: int) -> int:
    """Number of pods that ``amount`` allows when there are ``of`` of them.

    A share is rounded down, but a share above 0 % allows at least one, so that small workloads are
    not left out for ever; ``"100%"`` is no ceiling.
    """
    if isinstance(amount, int):
        return amount
    percent = int(amount.removesuffix("%"))
    return max(percent * of // 100, 1) if percent else 0
