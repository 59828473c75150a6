"""All targets."""

from __future__ import annotations

from fuzzing.target import Target
from fuzzing.targets import answers, callers, devices, files, model, policies, servers, wire

TARGETS: tuple[Target, ...] = (
    *model.TARGETS,
    *wire.TARGETS,
    *servers.TARGETS,
    *answers.TARGETS,
    *files.TARGETS,
    *policies.TARGETS,
    *callers.TARGETS,
    *devices.TARGETS,
)
