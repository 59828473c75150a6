"""One line of the audit log: an Eviction record at its end, as JSON (docs/adr/0055)."""

import json
from typing import Literal

from pydantic import Field

from plimsoll.api.schema.fields import Timestamp
from plimsoll.api.schema.resource import API_VERSION, Resource, ResourceMeta
from plimsoll.api.v1alpha1.eviction import Eviction, EvictionSpec, EvictionStatus


class AuditedEviction(Resource):
    """A record that will not change any more, or that somebody deleted before its end.

    A line may come twice, with the same uid; it says the same.
    """

    api_version: Literal["plimsoll.dev/v1alpha1"] = Field(
        default=API_VERSION, description="Group and version of the line's format."
    )
    kind: Literal["AuditedEviction"] = Field(default="AuditedEviction", description="Kind of the line.")
    cluster: str | None = Field(
        default=None, description="Name of the cluster, as --cluster-name says; absent without it."
    )
    uid: str = Field(description="Identity of the record; lines with the same uid are one and the same.")
    namespace: str = Field(description="Namespace of the record and of the pod.")
    name: str = Field(description="Name of the record.")
    created: Timestamp = Field(description="When the record was created.")
    deleted: bool = Field(
        default=False,
        description="Whether the record was deleted before its end; its phase is the last known.",
    )
    spec: EvictionSpec = Field(description="The decision: which pod, by which policy and strategy, and why.")
    status: EvictionStatus = Field(description="How it ended, and when each phase was reached.")

    def record_document(self, suffix: str = "") -> bytes:
        """The record as JSON, as the API server had it; the suffix is added to its name."""
        record = Eviction(
            metadata=ResourceMeta(name=self.name + suffix, namespace=self.namespace, uid=self.uid),
            spec=self.spec,
            status=self.status,
        )
        found = record.model_dump(mode="json", by_alias=True, exclude_none=True)
        found["metadata"]["creationTimestamp"] = self.created.isoformat()
        return json.dumps(found).encode()
