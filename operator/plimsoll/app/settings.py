"""Flags of ``plimsoll run`` as validated values."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, field_validator

from plimsoll.api.schema.fields import duration_s
from plimsoll.leadership.election import JITTER_FACTOR, Terms


def _seconds(given: object) -> object:
    """A duration as Kubernetes' flags accept it; ``0`` needs no unit here."""
    return duration_s("0s" if given == "0" else given) if isinstance(given, str) else given


Seconds = Annotated[float, BeforeValidator(_seconds), Field(gt=0)]

#: A name in the API: RFC 1123.
NAME = r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$"


class Settings(BaseModel):
    """Settings of one operator process; decisions depend on policies instead."""

    model_config = ConfigDict(defer_build=True, frozen=True, extra="forbid")

    kubeconfig: Path | None = Field(
        default=None, description="Path of the kubeconfig file; in-cluster or the default one when None."
    )
    bind_address: str = Field(
        default="0.0.0.0",  # noqa: S104 - probes and Prometheus connect from outside the pod
        description="Address of metrics and probes.",
    )
    metrics_port: int = Field(
        default=8081, ge=0, le=65535, description="Port of the metrics; 0 takes a free port."
    )
    health_port: int = Field(default=8080, ge=0, le=65535, description="Port of the probes; 0 opens none.")
    log_format: Literal["json", "text"] = Field(default="json", description="Format of the log.")
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        default="INFO", description="Least level that is logged."
    )
    seed: int | None = Field(default=None, description="Seed of random numbers; None differs each time.")
    event_loop: Literal["auto", "asyncio"] = Field(
        default="auto",
        description="Event loop of the main thread: auto (uvloop where it is installed) or asyncio.",
    )
    http_client: Literal["plimsoll", "aiohttp"] = Field(
        default="plimsoll", description="Client that sends the writes."
    )
    plans: Literal["process", "thread"] = Field(
        default="process",
        description="Where long plans are made: in a fork, or in a thread.",
    )
    leader_elect: bool = Field(
        default=True, description="Whether the process decides and writes only while it holds the Lease."
    )
    leader_elect_lease_duration: Seconds = Field(
        default=15.0, description="How long others wait after the leader's last renewal, in whole seconds."
    )
    leader_elect_renew_deadline: Seconds = Field(
        default=10.0, description="How long a leader writes after its last renewal, in seconds."
    )
    leader_elect_retry_period: Seconds = Field(
        default=2.0, description="Seconds between two attempts to get or renew the Lease."
    )
    leader_elect_resource_name: str = Field(
        default="plimsoll", pattern=NAME, description="Name of the Lease."
    )
    leader_elect_resource_namespace: str = Field(
        default="",
        pattern=f"{NAME}|^$",
        description="Namespace of the Lease; empty: the pod's own, or kube-system outside of a cluster.",
    )

    operator_name: str = Field(
        default="",
        max_length=63,
        pattern=r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$",
        description="Name of this operator: it serves the policies whose label plimsoll.dev/operator has it,"
        " and only places pods; empty: those without the label.",
    )
    cluster_name: str = Field(
        default="",
        pattern=r"^[A-Za-z0-9]?[A-Za-z0-9._-]{0,252}$",
        description="Name of the cluster in log lines, the audit log and notices; empty: it is left out.",
    )
    audit_log: str = Field(
        default="",
        max_length=4096,
        description="File to which finished records are appended as lines of JSON; -: standard output.",
    )
    notify_url: str = Field(
        default="", pattern=r"^(https?://\S+)?$", description="Address that gets CloudEvents; empty: none."
    )
    notify_token_file: Path | None = Field(
        default=None, description="File with the bearer token for that address."
    )
    notify_per_minute: int = Field(
        default=60, ge=1, le=6000, description="Notices to that address a minute, at most."
    )

    ui: bool = Field(default=False, description="Whether /ui shows the operator to people.")

    @field_validator("leader_elect_lease_duration")
    @classmethod
    def _is_whole(cls, given: float) -> float:
        if given != int(given):
            raise ValueError("leaseDuration must be in whole seconds: a Lease holds no others")
        return given

    @field_validator("leader_elect_renew_deadline")
    @classmethod
    def _is_shorter_than_the_lease(cls, given: float, info: ValidationInfo) -> float:
        if given >= info.data.get("leader_elect_lease_duration", given + 1):
            raise ValueError("leaseDuration must be greater than renewDeadline")
        return given

    @field_validator("leader_elect_retry_period")
    @classmethod
    def _fits_into_the_deadline(cls, given: float, info: ValidationInfo) -> float:
        if JITTER_FACTOR * given >= info.data.get("leader_elect_renew_deadline", JITTER_FACTOR * given + 1):
            raise ValueError("renewDeadline must be greater than retryPeriod*JitterFactor (1.2)")
        return given

    @property
    def terms(self) -> Terms:
        """The times of the election."""
        return Terms(
            int(self.leader_elect_lease_duration),
            self.leader_elect_renew_deadline,
            self.leader_elect_retry_period,
        )
