"""A whole seed over HTTP and in-memory sockets; ``make simulate ARGS=--wire`` runs as many as one likes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from simulation.run import Plan, simulated
from simulation.wire.faults import WireFaultKind

ROOT = Path(__file__).parents[3]

#: Virtual seconds with faults of bytes, and of peace after them.
SEED, FAULTY_S, PEACE_S = 6, 40.0, 100.0


def test_no_promise_is_broken_by_bytes_and_a_seed_is_the_same_run_in_another_process() -> None:
    """The operator's HTTP clients and roadstead's HTTP server, two replicas, a cluster, the checker."""
    plan = f"{SEED}, faulty_s={FAULTY_S}, peace_s={PEACE_S}, kinds=tuple(WireFaultKind), is_wired=True"
    paths = [ROOT / "operator", ROOT / "devcluster/src", ROOT / "tests"]
    environment = {**os.environ, "PYTHONHASHSEED": "1234", "PYTHONPATH": os.pathsep.join(map(str, paths))}
    program = f"""
from simulation.run import Plan, simulated
from simulation.wire.faults import WireFaultKind
print(simulated(Plan({plan})).digest)
"""
    kinds = tuple(WireFaultKind)
    found = simulated(Plan(SEED, faulty_s=FAULTY_S, peace_s=PEACE_S, kinds=kinds, is_wired=True))
    again = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )

    assert found.violations == [], f"make simulate SEED={SEED} ARGS=--wire"
    assert found.facts.bindings > 0
    assert len(found.faults) > 8
    assert again.stdout.strip() == found.digest
