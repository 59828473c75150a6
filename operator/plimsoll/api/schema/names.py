"""Names, with the bounds that Kubernetes sets on them."""

from typing import Annotated

from pydantic import Field

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
