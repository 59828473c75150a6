"""The flags of ``plimsoll run``: client-go's names, values and rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from plimsoll.app.candidacy import namespace_of
from plimsoll.app.settings import Settings
from plimsoll.commands.program import app
from plimsoll.leadership.election import Terms

if TYPE_CHECKING:
    from pathlib import Path


def test_the_defaults_are_those_of_client_go() -> None:
    """On, 15 s, 10 s and 2 s."""
    assert Settings().leader_elect
    assert Settings().terms == Terms(15, 10.0, 2.0)


def test_durations_are_written_as_in_go() -> None:
    """The descheduler's: 137 s, 107 s, 26 s."""
    settings = Settings.model_validate(
        {
            "leader_elect": "false",
            "leader_elect_lease_duration": "2m17s",
            "leader_elect_renew_deadline": "107s",
            "leader_elect_retry_period": "26000ms",
        }
    )

    assert not settings.leader_elect
    assert settings.terms == Terms(137, 107.0, 26.0)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--leader-elect-lease-duration=10s"], "leaseDuration must be greater than renewDeadline"),
        (["--leader-elect-renew-deadline=15s"], "leaseDuration must be greater than renewDeadline"),
        (
            ["--leader-elect-renew-deadline=2s"],
            "renewDeadline must be greater than retryPeriod*JitterFactor (1.2)",
        ),
        (["--leader-elect-lease-duration=15500ms"], "whole seconds"),
        (["--leader-elect-lease-duration=15"], "is no duration"),
        (["--leader-elect-retry-period=0"], "greater than 0"),
        (["--leader-elect=perhaps"], "valid boolean"),
        (["--leader-elect-resource-name=Not_A_Name"], "match pattern"),
        (["--leader-elect-resource-name="], "match pattern"),
    ],
)
def test_a_wrong_flag_is_named(options: list[str], problem: str) -> None:
    """Before anything is connected."""
    result = CliRunner().invoke(app, ["run", *options], env={"COLUMNS": "400", "NO_COLOR": "1"})

    assert result.exit_code == 1
    assert problem in " ".join(result.output.replace("│", " ").split())
    assert options[0].partition("=")[0] in result.output or "renew" in problem


def test_the_lease_lies_where_the_flag_says_else_with_the_pod(tmp_path: Path) -> None:
    """And in kube-system for a process outside of a cluster."""
    own = tmp_path / "namespace"
    assert namespace_of(Settings(), own) == "kube-system"
    own.write_text("plimsoll\n")
    assert namespace_of(Settings(), own) == "plimsoll"
    assert namespace_of(Settings(kubeconfig=tmp_path / "config"), own) == "kube-system"

    assert namespace_of(Settings(leader_elect_resource_namespace="there"), own) == "there"
