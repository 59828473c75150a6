"""Rules across fields, each said twice side by side: in CEL for the API server, in Python for the model.

The API server refuses what breaks a rule at apply; the model refuses the same, so that an object that
came around the server (a file given to a command, a test) is judged alike.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

from msgspec import Struct
from pydantic import BaseModel, GetCoreSchemaHandler, GetJsonSchemaHandler, model_validator
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from plimsoll.framework.field_errors import DUPLICATE, RULE_BROKEN


class Rule(Struct, frozen=True):
    """What must hold of an object.

    Attributes:
        cel: the rule as the API server evaluates it, ``self`` being the object.
        holds: the same in Python, given the model.
        message: one sentence: what is allowed, what to do.
        field: the field of the object to blame, as written on the wire; the object itself when empty.
    """

    cel: str
    holds: Callable[[Any], bool]
    message: str
    field: str = ""

    def to_validation(self) -> dict[str, str]:
        """The item of ``x-kubernetes-validations``."""
        path = {"fieldPath": f".{self.field}"} if self.field else {}
        return {"rule": self.cel, "message": self.message} | path


class TransitionRule(Struct, frozen=True):
    """What must hold of an update, given the old and the new object; as :class:`Rule` otherwise."""

    cel: str
    holds: Callable[[Any, Any], bool]
    message: str

    def to_validation(self) -> dict[str, str]:
        """The item of ``x-kubernetes-validations``."""
        return {"rule": self.cel, "message": self.message}


class Ruled(BaseModel):
    """A model whose rules are checked at birth, and carried into its schema."""

    rules: ClassVar[tuple[Rule, ...]] = ()
    transition_rules: ClassVar[tuple[TransitionRule, ...]] = ()

    @model_validator(mode="after")
    def _obeys_rules(self) -> Self:
        for rule in self.rules:
            if not rule.holds(self):
                raise PydanticCustomError(
                    RULE_BROKEN, "{sentence}", {"sentence": rule.message, "field": rule.field}
                )
        return self

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """The usual schema, with the rules as ``x-kubernetes-validations``."""
        schema = handler(core_schema)
        rules = [rule.to_validation() for rule in cls.rules]
        rules += [rule.to_validation() for rule in cls.transition_rules]
        if rules:
            handler.resolve_ref_schema(schema)["x-kubernetes-validations"] = rules
        return schema


class UniqueItems(Struct, frozen=True):
    """Marks a list of scalars as a set (``x-kubernetes-list-type: set``), or one of objects as keyed."""

    key: str = ""

    def _checked(self, items: Sequence[Any]) -> Sequence[Any]:
        seen = set()
        for index, item in enumerate(items):
            value = getattr(item, self.key) if self.key else item
            if value in seen:
                sentence = "{value} occurs twice; each item may occur once"
                raise PydanticCustomError(DUPLICATE, sentence, {"value": str(value), "index": index})
            seen.add(value)
        return items

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Check the items after each of them was."""
        return core_schema.no_info_after_validator_function(self._checked, handler(source))

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """The list, with its type in the API server's terms."""
        kind = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [to_camel(self.key)]}
        return handler(core) | (kind if self.key else {"x-kubernetes-list-type": "set"})
