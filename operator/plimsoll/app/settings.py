"""Flags of ``plimsoll run`` as checked values."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Settings(BaseModel):
    """How one operator process runs; what it decides is the policies' business."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kubeconfig: Path | None = Field(default=None, description="In-cluster or the default one when None.")
    bind_address: str = "0.0.0.0"  # noqa: S104 - probes and Prometheus come from outside the pod
    metrics_port: int = Field(default=8081, ge=0, le=65535, description="0 takes a free port.")
    health_port: int = Field(default=8080, ge=0, le=65535, description="0 takes a free port.")
    log_format: Literal["json", "text"] = "json"
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    seed: int | None = Field(default=None, description="Of the dice; None rolls differently each time.")
