"""Arguments of plugins and strategies, as written under ``pluginConfig`` and ``strategies``."""

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class PluginArgs(BaseModel):
    """The base of every plugin's arguments: frozen, closed, camelCase on the wire.

    A field that is not declared is refused: a typo is an error, not a default.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
    )


class NoArgs(PluginArgs):
    """A plugin without arguments."""
