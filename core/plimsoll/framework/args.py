"""Arguments of plugins and strategies, as written under ``pluginConfig`` and ``strategies``."""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from plimsoll.framework.errors import ConfigurationError
from plimsoll.framework.field_errors import field_errors, summary


class PluginArgs(BaseModel):
    """Base class of every plugin's arguments: frozen, closed, camelCase on the wire.

    An undeclared field is rejected: a typo or another spelling is an error, not a default.
    """

    model_config = ConfigDict(
        defer_build=True,
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
    )


class NoArgs(PluginArgs):
    """The arguments of a plugin without any."""


ArgsT = TypeVar("ArgsT", bound=PluginArgs)


def parse_args(model: type[ArgsT], given: Mapping[str, Any] | None, path: str) -> ArgsT:
    """Parse and validate arguments at ``path`` in a policy; ``apiVersion`` and ``kind`` are ignored.

    Raises:
        ConfigurationError: The plugin does not accept them; names the field.
    """
    plain = {key: value for key, value in (given or {}).items() if key not in ("apiVersion", "kind")}
    try:
        return model.model_validate(plain, by_alias=True, by_name=False)
    except ValidationError as exc:
        first, *others = field_errors(exc, model=model, prefix=path)
        rest = f"; {summary(others, shown=2)}" if others else ""
        raise ConfigurationError(first.path, first.sentence + rest) from exc
