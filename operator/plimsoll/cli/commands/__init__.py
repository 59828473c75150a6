"""The commands, a module each.

To add one: write commands/VERB.py with ``def VERB(options: Options, ...)``, typed for typer (its docstring is
the help), which prints through cli/output.py and raises UserError; end it with ``VERB = Verb(name, function,
flags)`` or a ``VerbGroup``, and name that below. Tests of help, flags and errors then cover it.
"""

from plimsoll.cli.commands import (
    check,
    explain,
    fit,
    history,
    plan,
    proposals,
    run,
    validate,
    version,
    whatif,
)
from plimsoll.cli.verbs import Verb, VerbGroup

VERBS: tuple[Verb | VerbGroup, ...] = (
    run.VERB,
    explain.VERB,
    check.VERB,
    plan.VERB,
    history.VERB,
    proposals.APPROVE,
    proposals.REJECT,
    validate.VERB,
    version.VERB,
    fit.VERB,
    whatif.VERB,
)
