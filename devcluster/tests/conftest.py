"""Fixtures of all tests."""

from __future__ import annotations

import pytest
from hypothesis import settings

from simulated_cluster import Simulation

# A busy machine is slow, not wrong: the time limit of a whole test is pytest's. A project around this one may
# have loaded a profile of its own.
if settings.default.deadline is not None:
    settings.register_profile("roadstead", deadline=None)
    settings.load_profile("roadstead")


@pytest.fixture
def simulation() -> Simulation:
    """An empty cluster; ``with_controllers`` and ``with_kubelets`` start them."""
    return Simulation()
