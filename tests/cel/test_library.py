"""The library: declared as we implement it, and missing."""

import subprocess
import sys

from dra_cel import calls, declarations, library, logic
from dra_cel.functions import named_formats
from dra_cel.functions.regular_expressions import without_captures


def test_what_is_declared_is_implemented() -> None:
    """Every function that an expression may call has an implementation."""
    implemented = {*calls.NAMES, *logic.LAZY}

    assert {name for name, _, _ in declarations.FUNCTIONS} <= implemented
    assert tuple(named_formats.FORMATS) == declarations.NAMED_FORMATS


def test_without_the_library_a_selector_says_what_is_missing() -> None:
    """The operator runs; selectors are refused with the remedy."""
    code = (
        "import sys; sys.modules['cel_expr_python'] = None\n"
        "from dra_cel import selector\n"
        "print(selector('true').error)"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == f"CEL compile error: {library.MISSING}"


def test_it_is_loaded_when_the_first_expression_is_compiled() -> None:
    """A cluster without devices does not pay for it."""
    code = (
        "import sys, dra_cel as s\n"
        "print('cel_expr_python' in sys.modules, s.selector('true').error, 'cel_expr_python' in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["False", "True"]


def test_groups_do_not_capture() -> None:
    """``find`` returns the whole match; escapes, classes and quoted text stay."""
    assert without_captures(r"(a)(?P<b>c)\((?i:d)[(]\Q(\E(") == r"(?:a)(?:c)\((?i:d)[(]\Q(\E(?:"
