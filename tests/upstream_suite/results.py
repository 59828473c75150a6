"""Results of Kubernetes' end-to-end suite: read from its reports, and compared in a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from xml.etree.ElementTree import Element, fromstring

#: How ginkgo reports a spec that a filter left out, and one that has skipped itself.
FILTERED, SKIPPED_ITSELF = "skipped", "skipped - "

#: What ginkgo names the specs of a suite; all else prepares the suite or cleans up.
SPEC = "[It] "

#: How results are worded.
PASSES, FAILS, SKIPS = "passes", "**fails**", "skips itself: "

Results = Mapping[str, str]


class BrokenSuiteError(Exception):
    """The suite could not be prepared or cleaned up, or no spec ran: its results mean nothing."""


def read(report: str) -> dict[str, str]:
    """The result of each spec that ran, by its name, in the report's order.

    Args:
        report: JUnit's XML, as ``e2e.test --report-dir`` writes it.

    Raises:
        BrokenSuiteError: No spec ran, or what surrounds the specs failed.
    """
    found: dict[str, str] = {}
    for case in fromstring(report).iter("testcase"):
        name, fails = case.get("name", ""), _fails(case)
        if not name.startswith(SPEC):
            if fails:
                raise BrokenSuiteError(f"{name} failed: {_failure(case)}")
        elif fails:
            found[name.removeprefix(SPEC)] = FAILS
        elif (skipped := case.find("skipped")) is None:
            found[name.removeprefix(SPEC)] = PASSES
        elif (message := skipped.get("message", "")).startswith(SKIPPED_ITSELF):
            found[name.removeprefix(SPEC)] = f"{SKIPS}{message.removeprefix(SKIPPED_ITSELF)}"
        elif message != FILTERED:
            raise BrokenSuiteError(f"{name} was neither run nor left out: {message}")
    if not found:
        raise BrokenSuiteError("no spec ran: no name matches")
    return found


def failures(report: str) -> dict[str, str]:
    """The last line of the message of each spec that failed, by its name."""
    cases = fromstring(report).iter("testcase")
    return {case.get("name", "").removeprefix(SPEC): _failure(case) for case in cases if _fails(case)}


def _fails(case: Element) -> bool:
    return case.find("failure") is not None or case.find("error") is not None


def _failure(case: Element) -> str:
    found = case.find("failure")
    said = found if found is not None else case.find("error")
    text = "" if said is None else said.text or said.get("message") or ""
    return next((line.strip() for line in text.splitlines() if line.strip()), "no message")


@dataclass(frozen=True, slots=True)
class Comparison:
    """The results of several schedulers on the same specs.

    Attributes:
        version: Of the API server.
        runs: Results by scheduler, the reference first.
    """

    version: str
    runs: Mapping[str, Results]

    @property
    def specs(self) -> list[str]:
        """The specs that ran in any run, sorted."""
        return sorted({spec for results in self.runs.values() for spec in results})

    @property
    def worse(self) -> list[str]:
        """The specs that pass with the first scheduler and not with each other one."""
        reference, *others = self.runs.values()
        return [
            spec
            for spec in self.specs
            if reference.get(spec) == PASSES and any(each.get(spec) != PASSES for each in others)
        ]

    def summary(self) -> str:
        """How many of the specs pass with each scheduler, in one sentence; those that skip do not count."""
        parts = []
        for scheduler, results in self.runs.items():
            judged = [each for each in results.values() if not each.startswith(SKIPS)]
            parts.append(f"{judged.count(PASSES)} of {len(judged)} pass with {scheduler}")
        return f"{', '.join(parts)}."

    def table(self) -> str:
        """A row for each spec, a column for each scheduler, in Markdown."""
        lines = [
            f"| Spec | {' | '.join(self.runs)} |",
            f"| --- |{' --- |' * len(self.runs)}",
            *(f"| {' | '.join([_cell(spec), *self._of(spec)])} |" for spec in self.specs),
        ]
        return "\n".join(lines)

    def _of(self, spec: str) -> list[str]:
        return [_cell(results.get(spec, "did not run")) for results in self.runs.values()]

    def on_page(self, present: str) -> str:
        """A page with this version's section in place of the one that it has, or before those of others."""
        heading = f"## Kubernetes {self.version}\n"
        section = f"{heading}\n{self.summary()}\n\n{self.table()}\n"
        before, _, rest = present.partition(heading)
        if not rest:
            before, mark, rest = present.partition("## Kubernetes ")
            return f"{before.rstrip()}\n\n{section}" + (f"\n{mark}{rest}" if mark else "")
        _, mark, others = rest.partition("\n## Kubernetes ")
        return f"{before}{section}{mark}{others}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
