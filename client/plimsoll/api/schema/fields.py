"""Field types of the custom resources: names, quantities, durations, amounts, timestamps."""

import re
from datetime import UTC, datetime
from fractions import Fraction
from typing import Annotated, Any

from pydantic import AfterValidator, AwareDatetime, Field, GetCoreSchemaHandler, GetJsonSchemaHandler
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

GO_DURATION = r"^([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+$"

Duration = Annotated[str, Field(pattern=GO_DURATION, max_length=64, examples=["10m", "1h30m"])]

SIGNED_DURATION = GO_DURATION.replace("^", "^-?")

SignedDuration = Annotated[str, Field(pattern=SIGNED_DURATION, max_length=64, examples=["10m", "1h30m"])]

_TERM = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ns|us|ms|s|m|h)")

_SECONDS = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "m": Fraction(60),
    "h": Fraction(3600),
}


def duration_s(text: str) -> float:
    """Seconds of a duration.

    Raises:
        ValueError: the text is no duration.
    """
    if not re.fullmatch(GO_DURATION, text):
        raise ValueError(
            f"{text!r} is no duration: write a number with a unit of ns, us, ms, s, m, h, as in 1h30m"
        )
    return float(sum(Fraction(number) * _SECONDS[unit] for number, unit in _TERM.findall(text)))


NamespaceName = Annotated[
    str, Field(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=63, examples=["team-a"])
]
"""A DNS label."""

ObjectName = Annotated[
    str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", max_length=253, examples=["web-1"])
]
"""A DNS subdomain."""

SchedulerName = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$", max_length=63, examples=["plimsoll"])
]
"""What pods write as ``spec.schedulerName``; also the reporting controller of their events."""

PluginName = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9]([-A-Za-z0-9_./]*[A-Za-z0-9])?$", max_length=253, examples=["NodeResourcesFit"]
    ),
]
"""A plugin or strategy: in-tree ones, and those of third parties (``example.com/Mine``)."""

LabelKey = Annotated[
    str,
    Field(
        pattern=r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$",
        max_length=317,
        examples=["app.kubernetes.io/name"],
    ),
]

LabelValue = Annotated[
    str, Field(pattern=r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$", max_length=63, examples=["web"])
]

Uid = Annotated[str, Field(min_length=1, max_length=128)]

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


def to_second(moment: datetime) -> datetime:
    """The moment in UTC, cut to the second, so that what is read back equals what was written."""
    return moment.astimezone(UTC).replace(microsecond=0)


Timestamp = Annotated[AwareDatetime, AfterValidator(to_second)]
