"""Base of the models that users write (closed, frozen, camelCase), and the shape of a custom resource.

On the wire names are camelCase and types are exact: ``from_wire`` refuses ``"5"`` for a number, as the
API server does. In Python names are snake_case and lists may be given for tuples.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Final, Literal, Self

from msgspec import Struct
from pydantic import ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import InitErrorDetails, PydanticCustomError, PydanticSerializationError, to_json

from plimsoll.api.schema.fields import Timestamp
from plimsoll.api.schema.rules import Ruled

GROUP = "plimsoll.dev"
VERSION = "v1alpha1"
API_VERSION: Final = "plimsoll.dev/v1alpha1"
CATEGORY = "plimsoll"
"""``kubectl get plimsoll`` lists every kind of ours."""


class Resource(Ruled):
    """Frozen, closed, camelCase on the wire: a typo is an error, not a default."""

    model_config = ConfigDict(
        defer_build=True,
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
    )

    @classmethod
    def from_wire(cls, value: Mapping[str, Any]) -> Self:
        """The model of what an API server or a file said.

        Null means an absent field: the API server has refused or defaulted the nulls that matter.

        Raises:
            pydantic.ValidationError: it is malformed; ``field_errors`` makes sentences of it.
        """
        try:
            content = to_json(value, fallback=dict)
        except PydanticSerializationError as exc:
            unreadable = PydanticCustomError("json_invalid", "it cannot be read as JSON")
            detail = InitErrorDetails(type=unreadable, loc=(), input=None)
            raise ValidationError.from_exception_data(cls.__name__, [detail]) from exc
        return cls.model_validate_json(content, strict=True, by_alias=True, by_name=False)

    def to_wire(self) -> dict[str, Any]:
        """Plain JSON values with the names of the wire; absent fields are left out."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


class PrinterColumn(Struct, frozen=True):
    """A column of ``kubectl get``; priority 1 shows with ``-o wide`` only."""

    name: str
    path: str
    type: Literal["string", "integer", "boolean", "date"] = "string"
    description: str = ""
    priority: int = 0


class Definition(Struct, frozen=True):
    """What a CustomResourceDefinition says besides the schema."""

    kind: str
    plural: str
    short_name: str
    scope: Literal["Cluster", "Namespaced"]
    columns: tuple[PrinterColumn, ...]
    selectable_fields: tuple[str, ...]
    """Paths that ``kubectl get --field-selector`` takes (Kubernetes 1.32 and newer), at most eight."""

    @property
    def name(self) -> str:
        """Name of the CustomResourceDefinition."""
        return f"{self.plural}.{GROUP}"


class ResourceMeta(Resource):
    """The part of ``metadata`` that we read or write; the API server owns the rest."""

    model_config = ConfigDict(extra="ignore")

    name: str = Field(default="", description="Name of the object, unique for its kind within its namespace.")
    namespace: str | None = Field(
        default=None, description="Namespace of the object; absent where objects of the kind have none."
    )
    uid: str | None = Field(
        default=None, description="Identity of the object: one that is made again under its name has another."
    )
    resource_version: str | None = Field(
        default=None, description="Version of the object, for writes that must not undo another."
    )
    generation: int | None = Field(default=None, description="Number of times that the spec was changed.")
    labels: dict[str, str] = Field(default={}, description="Labels by which selectors find the object.")
    annotations: dict[str, str] = Field(default={}, description="Annotations of people and programs.")
    creation_timestamp: Timestamp | None = Field(
        default=None, description="Time at which the object was created."
    )
    deletion_timestamp: Timestamp | None = Field(
        default=None, description="Time from which the object may be gone; absent until it is deleted."
    )


class CustomResource(Resource):
    """An object of our group; its ``definition`` and fields make the CustomResourceDefinition."""

    definition: ClassVar[Definition]

    api_version: Literal["plimsoll.dev/v1alpha1"] = Field(
        default=API_VERSION, description="Group and version of the kind."
    )
    metadata: ResourceMeta = Field(
        default=ResourceMeta.model_construct(), description="Name, labels and annotations of the object."
    )
