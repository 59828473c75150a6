"""Lists whose items are unique: sets, and lists keyed by a field, in the API server's terms.

Server-side apply merges such lists item by item, and the API server refuses a second item of one key.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from plimsoll.framework.field_errors import DUPLICATE


@dataclass(frozen=True, slots=True)
class UniqueItems:
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
