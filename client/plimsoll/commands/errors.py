"""The error boundary of the command line: one line on stderr, and an exit code.

Errors that a user or a cluster can cause end here as ``error: WHAT; WHERE; WHAT TO DO``, without a traceback.
Any other exception is a bug and keeps its traceback.
"""

import os
import sys
from collections.abc import Callable
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from click.exceptions import ClickException, Exit

from plimsoll.commands.printable import printable
from plimsoll.model.errors import PlimsollError

if TYPE_CHECKING:
    from pydantic import ValidationError


class ExitCode(IntEnum):
    """The exit status of a command (docs/cli.md)."""

    DONE = 0
    FAILED = 1  #: also wrong usage, as in kubectl
    FOUND = 2  #: success, with a result: moves of ``plan``, warnings of ``check --strict``
    INTERRUPTED = 130
    PIPE_CLOSED = 141  #: the reader of the output has closed the pipe


class UserError(PlimsollError):
    """A command cannot do what the user requested.

    Args:
        message: One sentence: what, where, what is allowed, what to do.
        exit_code: The exit status of the process.
    """

    def __init__(self, message: str, exit_code: int = ExitCode.FAILED) -> None:
        super().__init__(message)
        self.message = message
        self.exit_code = exit_code

    def __str__(self) -> str:
        """The sentence."""
        return self.message


def guarded(run: Callable[[], object]) -> int:
    """Run a command line and return its exit code; print errors."""
    try:
        run()
        sys.stdout.flush()
    except Exit as exc:
        return exc.exit_code
    except BrokenPipeError:
        return _pipe_closed()
    except caught() as exc:
        message, code = _explained(exc)
        sys.stderr.write(f"error: {printable(message)}\n")
        return int(code)
    return ExitCode.DONE


def caught() -> tuple[type[BaseException], ...]:
    """Exceptions that a user, a file or a cluster can cause; pydantic's if a command has imported it."""
    known = (KeyboardInterrupt, ClickException, PlimsollError, MemoryError, OSError)
    return (*known, sys.modules["pydantic"].ValidationError) if "pydantic" in sys.modules else known


def _explained(exc: BaseException) -> tuple[str, int]:
    """The sentence and the exit code."""
    match exc:
        case KeyboardInterrupt():
            return "interrupted", ExitCode.INTERRUPTED
        case ClickException():
            return f"{exc.format_message().rstrip('.')}; see --help", ExitCode.FAILED
        case UserError():
            return exc.message, exc.exit_code
        case MemoryError():
            return "out of memory", ExitCode.FAILED
        case OSError(filename=str() | bytes()):
            return f"{os.fsdecode(exc.filename)}: {exc.strerror}", ExitCode.FAILED
        case PlimsollError() | OSError():
            return str(exc), ExitCode.FAILED
    return sentence(exc), ExitCode.FAILED


def sentence(problem: "ValidationError | Any") -> str:
    """The first errors of a document, each with its field."""
    found = problem.errors(include_url=False, include_context=False)
    lines = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in found[:3]]
    more = f"; and {len(found) - 3} more" if len(found) > 3 else ""
    return "; ".join(lines) + more


def _pipe_closed() -> int:
    """Redirect the interpreter's last flush of its output to the null device."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return ExitCode.PIPE_CLOSED
