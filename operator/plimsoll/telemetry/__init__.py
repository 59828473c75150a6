"""Metrics and logs, and structlog, which is imported from here."""

import sys

if "rich" in sys.modules:
    import structlog as structlog
else:
    # structlog imports rich, for tracebacks, which takes 30 ms of a start; our logs format their own.
    sys.modules["rich"] = None  # type: ignore[assignment] # Python's way to say that it does not exist
    try:
        import structlog as structlog
    finally:
        del sys.modules["rich"]
