"""A pytest plugin with which coverage.py records the test file that covers a line: ``make coverage``.

Each test file is a context of coverage.py, in the process that runs its tests, in those that the tests start
as interpreters, and in those that are forked for them (tests/forked.py). What a process covers that serves
the tests of several files belongs to the file that started it. tools/coverage_map.py reads the result.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from typing import Any

#: The variables that processes inherit: the test file, and by coverage.py its configuration.
TEST_FILE, CONFIGURATION = "PLIMSOLL_TEST_FILE", "COVERAGE_PROCESS_CONFIG"


def record() -> None:
    """Let the test file of the environment cover what this process runs from now on, if it is measured."""
    coverage = sys.modules.get("coverage")
    measured = coverage.Coverage.current() if coverage else None
    if measured is not None and TEST_FILE in os.environ:
        measured.switch_context(os.environ[TEST_FILE])


#: A fork begins with the context of the process that coverage.py was started in.
os.register_at_fork(after_in_child=record)


def pytest_runtest_setup(item: Any) -> None:
    """Begin the context of a test's file, unless it lasts."""
    path = item.nodeid.partition("::")[0]
    if CONFIGURATION in os.environ and os.environ.get(TEST_FILE) != path:
        os.environ[TEST_FILE] = path
        configuration = json.loads(base64.b64decode(os.environ[CONFIGURATION])) | {"context": path}
        os.environ[CONFIGURATION] = base64.b64encode(json.dumps(configuration).encode()).decode()
        record()
