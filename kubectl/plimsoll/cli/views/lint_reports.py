"""Formats reports of ``plimsoll lint`` for CI systems: JUnit XML and SARIF 2.1.0.

Source: SARIF 2.1.0 (OASIS standard, section 3); JUnit as Jenkins, GitLab and GitHub Actions read it: a
``testsuite`` for each rule, a ``testcase`` for each finding, and one that passes for a rule without findings.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree as ET

from plimsoll.commands.printable import printable
from plimsoll.inspection.lint.rule import Severity
from plimsoll.inspection.lint.rules import RULES, Lint, LintFinding
from plimsoll.version import __version__

_LEVELS: Mapping[Severity, str] = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.INFO: "note",
}


def junit(found: Lint, rules: Sequence[str], fails: Severity) -> str:
    """JUnit XML; findings below ``fails`` pass, with their severity.

    Args:
        found: The findings.
        rules: Ids of the requested rules.
        fails: The lowest severity that counts as a failure.
    """
    unchecked = {each.rule: each.why for each in found.unchecked}
    root = ET.Element("testsuites", name="plimsoll lint")
    total = failures = 0
    for rule in rules:
        suite = ET.SubElement(root, "testsuite", name=rule)
        mine = [each for each in found.findings if each.rule == rule]
        bad = [each for each in mine if each.severity.rank >= fails.rank]
        for each in mine:
            case = ET.SubElement(suite, "testcase", classname=rule, name=printable(_name(each)))
            if each in bad:
                failure = ET.SubElement(
                    case, "failure", type=str(each.severity), message=printable(each.message)
                )
                failure.text = each.remedy
            else:
                ET.SubElement(case, "system-out").text = printable(f"{each.severity}: {each.message}")
        if not mine:
            case = ET.SubElement(suite, "testcase", classname=rule, name=rule)
            if rule in unchecked:
                ET.SubElement(case, "skipped", message=printable(unchecked[rule]))
        suite.set("tests", str(max(len(mine), 1)))
        suite.set("failures", str(len(bad)))
        suite.set("errors", "0")
        suite.set("skipped", str(int(rule in unchecked)))
        total, failures = total + max(len(mine), 1), failures + len(bad)
    root.set("tests", str(total))
    root.set("failures", str(failures))
    root.set("errors", "0")
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}'


def sarif(found: Lint) -> str:
    """SARIF 2.1.0: one run with all rules, and one result per finding."""
    places = {rule.id: place for place, rule in enumerate(RULES)}
    run = {
        "tool": {
            "driver": {
                "name": "plimsoll lint",
                "semanticVersion": __version__,
                "rules": [
                    {
                        "id": rule.id,
                        "shortDescription": {"text": rule.summary},
                        "help": {"text": f"{rule.remedy} See docs/cli/lint.md#{rule.id}."},
                        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
                    }
                    for rule in RULES
                ],
            }
        },
        "columnKind": "unicodeCodePoints",
        "results": [_result(each, places[each.rule]) for each in found.findings],
        "invocations": [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": [
                    {
                        "level": "note",
                        "message": {"text": f"not applied, {each.why}"},
                        "associatedRule": {"id": each.rule, "index": places[each.rule]},
                    }
                    for each in found.unchecked
                ],
            }
        ],
    }
    report = {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}
    return json.dumps(report, indent=2, ensure_ascii=False)


def _result(finding: LintFinding, place: int) -> dict[str, Any]:
    location: dict[str, Any] = {
        "logicalLocations": [{"name": finding.name, "fullyQualifiedName": _name(finding), "kind": "resource"}]
    }
    if finding.source is not None:
        location["physicalLocation"] = {"artifactLocation": {"uri": finding.source}}
    return {
        "ruleId": finding.rule,
        "ruleIndex": place,
        "level": _LEVELS[finding.severity],
        "message": {"text": f"{_name(finding)}: {finding.message}. {finding.remedy}"},
        "locations": [location],
    }


def _name(finding: LintFinding) -> str:
    return f"{finding.namespace}/{finding.kind}/{finding.name}"
