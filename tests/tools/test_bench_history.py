"""The command after ``make bench``: planted figures, commit by commit, and which one made them worse."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


class Checkout:
    """A repository whose commits are measured."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.history = folder / "tree", folder / "history.jsonl"
        self.folder.mkdir()
        self.git("init", "-q")

    def git(self, *words: str) -> str:
        """What git prints."""
        who = ("-c", "user.name=n", "-c", "user.email=n@example.com")
        done = subprocess.run(
            ["git", *who, *words], cwd=self.folder, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def commit(self) -> str:
        """One more commit."""
        self.git("commit", "-q", "--allow-empty", "-m", "change")
        return self.git("rev-parse", "--short=10", "HEAD")

    def measured(self, basic_us: float, cycle_s: float = 1.0, unit_s: float = 1.0) -> list[str]:
        """What the command says about figures of the present tree; a slow machine has a larger unit."""
        results = [
            {
                "nodes": 1000,
                "family": "basic",
                "templates": "10",
                "best_us": basic_us * unit_s,
                "p99_us": 9.0,
            },
            {"nodes": 1000, "pods": 9, "case": "usual", "strategy": "all", "warm_s": cycle_s * unit_s},
        ]
        results = [{**each, "unit_s": unit_s, "p99_us": 9.0} for each in results]
        file = self.history.with_name("results.jsonl")
        file.write_text("".join(f"{json.dumps(each)}\n" for each in results))
        command = [
            sys.executable,
            str(ROOT / "benchmarks/history.py"),
            str(file),
            "--root",
            str(self.folder),
        ]
        command += ["--history", str(self.history)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "tools")}
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
        return done.stdout.splitlines()


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """A repository with one commit."""
    one = Checkout(tmp_path)
    one.commit()
    return one


def test_the_commit_that_made_a_figure_worse_is_named(checkout: Checkout) -> None:
    """Also after further commits, by how much, and not for what is within the noise or became better."""
    checkout.measured(20.0)
    before = checkout.commit()
    assert checkout.measured(20.9)[0].startswith("compared with 1 commits")
    bad = checkout.commit()
    first = checkout.measured(23.0, cycle_s=0.5)
    checkout.commit()
    later = checkout.measured(22.0, cycle_s=0.51)

    name = "family basic, nodes 1000, templates 10: best"
    assert first[:-1] == [f"{name} is 15% worse than at {before}, by {bad}"]
    assert later[:-1] == [f"{name} is 10% worse than at {before}, by {bad}"]


def test_a_figure_that_recovered_is_not_reported(checkout: Checkout) -> None:
    """Nor is what was good again."""
    checkout.measured(20.0)
    checkout.commit()
    assert len(checkout.measured(25.0)) == 2
    checkout.commit()
    assert len(checkout.measured(20.5)) == 1


def test_noise_is_not_reported(checkout: Checkout) -> None:
    """Runs of one commit say how large it is."""
    assert checkout.measured(20.0)[0].startswith("compared with 0 commits")
    noisy = "runs of one commit differ by up to 20% here: what is less is not reported"
    assert checkout.measured(24.0)[1] == noisy
    checkout.commit()
    assert [each for each in checkout.measured(23.0) if "worse" in each] == []
    checkout.commit()
    assert [each.partition(" worse")[0] for each in checkout.measured(26.0) if "worse" in each] == [
        "family basic, nodes 1000, templates 10: best is 30%"
    ]


def test_commits_that_were_not_measured_may_be_to_blame(checkout: Checkout) -> None:
    before = checkout.git("rev-parse", "--short=10", "HEAD")
    checkout.measured(20.0)
    checkout.commit()
    checkout.commit()
    last = checkout.commit()

    assert checkout.measured(40.0)[0].endswith(
        f"100% worse than at {before}, by {last}, or by one of the 2 before it"
    )


def test_a_tree_with_changes_is_compared_and_not_kept(checkout: Checkout) -> None:
    before = checkout.git("rev-parse", "--short=10", "HEAD")
    checkout.measured(20.0)
    kept = checkout.history.read_text()
    (checkout.folder / "new").write_text("x")

    said = checkout.measured(30.0)

    assert said[0] == f"not kept: {before} has changes that are not committed"
    assert said[1].endswith(f"50% worse than at {before}, by {before}+")
    assert checkout.history.read_text() == kept


def test_figures_are_compared_with_those_of_the_same_machine_in_its_own_units(checkout: Checkout) -> None:
    """A busy machine is slower in all; another one is another."""
    checkout.measured(20.0)
    checkout.commit()
    assert len(checkout.measured(20.0, unit_s=3.0)) == 1
    checkout.commit()
    checkout.history.write_text(checkout.history.read_text().replace("cores", "other cores"))
    assert checkout.measured(99.0) == [f"compared with 0 commits on this machine ({checkout.history})"]


def test_the_engine_calibrates_each_figure(tmp_path: Path) -> None:
    """As make bench calls it."""
    output = tmp_path / "results.jsonl"
    command = [sys.executable, str(ROOT / "benchmarks/engine.py"), "--nodes", "5", "--families", "basic"]
    command += ["--most", "20", "--varieties", "10", "--output", str(output)]
    subprocess.run(command, check=True, capture_output=True)

    (result,) = map(json.loads, output.read_text().splitlines())
    assert 1e-4 < result["unit_s"] < 1.0
    assert result["best_us"] > 0
