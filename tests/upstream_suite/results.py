"""Results of suites of others: read from their reports, and compared in a table."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element, fromstring

#: How ginkgo reports a spec that a filter left out, and one that has skipped itself.
FILTERED, SKIPPED_ITSELF = "skipped", "skipped - "

#: What ginkgo names the specs of a suite; all else prepares the suite or cleans up.
SPEC = "[It] "

#: How results are worded.
PASSES, FAILS, SKIPS = "passes", "**fails**", "skips itself: "

Results = Mapping[str, str]

#: How Go prints the outcome of a test, the start of one and what it says.
OUTCOME = re.compile(r"^ *--- (PASS|FAIL|SKIP): (\S+) \(", re.MULTILINE)
SPEAKS = re.compile(r"^=== (?:RUN|NAME|CONT) +(\S+)$")
COMPLAINT = re.compile(
    r"_test\.go:\d+: ((?:error|no|unexpected|expected|pod distribution) .*)", re.IGNORECASE
)


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


def read_go(output: str, evictions: Sequence[tuple[str, int]] = ()) -> dict[str, str]:
    """The result of each test that ran, by its name, in order; of one with cases those of its cases.

    Args:
        output: What a test binary of Go prints with ``-test.v``.
        evictions: The end of a test's name and how many pods were evicted, for each of its cases in order.

    Raises:
        BrokenSuiteError: No test ran, or the tests panicked.
    """
    found = {name: outcome for outcome, name in OUTCOME.findall(output)}
    if not found or "\npanic: " in output:
        raise BrokenSuiteError(
            "no test ran" if not found else output.partition("\npanic: ")[2].splitlines()[0]
        )
    counts = defaultdict[str, list[int]](list)
    for label, count in evictions:
        counts[label.removeprefix("e2e-")].append(count)
    started = [name for line in output.splitlines() if (name := _speaker(line)) in found]
    results = {}
    for name in dict.fromkeys(started):
        cases = [each for each in found if each.startswith(f"{name}/")]
        if not cases or (found[name] == "FAIL" and all(found[each] != "FAIL" for each in cases)):
            of_test = counts[name.partition("/")[0].lower()]
            said = {"PASS": PASSES, "FAIL": FAILS, "SKIP": f"{SKIPS}-"}[found[name]]
            results[name] = f"{said}, {of_test.pop(0)} evicted" if of_test else said
    return results


def failures_of_go(output: str) -> dict[str, str]:
    """The first complaint of each test that failed, by its name."""
    failed = {name for outcome, name in OUTCOME.findall(output) if outcome == "FAIL"}
    found: dict[str, str] = {}
    name = ""
    for line in output.splitlines():
        name = _speaker(line) or name
        if name in failed and (said := COMPLAINT.search(line)):
            found.setdefault(name, said[1])
    return found


def _speaker(line: str) -> str:
    """The test that speaks from a line on, "" for a line that does not say so."""
    said = SPEAKS.match(line)
    return said[1] if said else ""


def _fails(case: Element) -> bool:
    return case.find("failure") is not None or case.find("error") is not None


def _failure(case: Element) -> str:
    found = case.find("failure")
    said = found if found is not None else case.find("error")
    text = "" if said is None else said.text or said.get("message") or ""
    return next((line.strip() for line in text.splitlines() if line.strip()), "no message")


@dataclass(frozen=True, slots=True)
class Run:
    """What one run of a suite left: the results, and why specs failed, by their names."""

    results: Results
    failures: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The results of several programs on the same specs.

    Attributes:
        suite: Whose it is, with its version.
        runs: Results by program, the reference first.
    """

    suite: str
    runs: Mapping[str, Results]

    @property
    def specs(self) -> list[str]:
        """The specs that ran in any run, sorted."""
        return sorted({spec for results in self.runs.values() for spec in results})

    @property
    def worse(self) -> list[str]:
        """The specs that pass with the first program and not in the same way with each other one."""
        reference, *others = self.runs.values()
        return [
            spec
            for spec in self.specs
            if (passed := reference.get(spec, "")).startswith(PASSES)
            and any(each.get(spec) != passed for each in others)
        ]

    def summary(self) -> str:
        """How many of the specs pass with each scheduler, in one sentence; those that skip do not count."""
        parts = []
        for program, results in self.runs.items():
            judged = [each for each in results.values() if not each.startswith(SKIPS)]
            passed = sum(each.startswith(PASSES) for each in judged)
            parts.append(f"{passed} of {len(judged)} pass with {program}")
        return f"{', '.join(parts)}."

    def table(self) -> str:
        """A row for each spec, a column for each program, in Markdown."""
        lines = [
            f"| Spec | {' | '.join(self.runs)} |",
            f"| --- |{' --- |' * len(self.runs)}",
            *(f"| {' | '.join([_cell(spec), *self._of(spec)])} |" for spec in self.specs),
        ]
        return "\n".join(lines)

    def _of(self, spec: str) -> list[str]:
        return [_cell(results.get(spec, "did not run")) for results in self.runs.values()]

    def on_page(self, present: str) -> str:
        """A page with this suite's section in place of the one that it has; the newest version is first."""
        about, *sections = re.split(r"^(?=## \S+ \d)", present, flags=re.MULTILINE)
        heading = f"## {self.suite}\n"
        others = [each for each in sections if not each.startswith(heading)]
        made = f"{heading}\n{self.summary()}\n\n{self.table()}"
        ordered = sorted([made, *others], key=_place)
        return "\n\n".join(each.rstrip() for each in (about, *ordered)) + "\n"


def _place(section: str) -> tuple[str, list[int]]:
    _, suite, version = section.split()[:3]
    return suite, [-int(number) for number in re.findall(r"\d+", version)]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
