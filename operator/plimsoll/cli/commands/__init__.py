"""The commands, a module each.

To add one: write commands/VERB.py with ``def VERB(options: Options, ...)``, typed for typer (its docstring is
the help), which prints through cli/output.py and raises UserError; end it with ``VERB = Verb(name, function,
flags)`` or a ``VerbGroup``, and name that below. Tests of help, flags and errors then cover it.
"""

from plimsoll.cli.commands import (
    check,
    convert,
    explain,
    fit,
    history,
    lint,
    pause,
    plan,
    proposals,
    replay,
    run,
    snapshot,
    top,
    validate,
    whatif,
)
from plimsoll.cli.commands.installation import completion, crds, demo, version
from plimsoll.cli.verbs import Verb, VerbGroup

#: In the order in which the help shows them: ask, look ahead, configure, act, the installation.
VERBS: tuple[Verb | VerbGroup, ...] = (
    check.VERB,
    explain.VERB,
    top.VERB,
    plan.VERB,
    history.VERB,
    fit.VERB,
    whatif.VERB,
    convert.VERB,
    snapshot.VERB,
    replay.VERB,
    validate.VERB,
    lint.VERB,
    proposals.APPROVE,
    proposals.REJECT,
    pause.PAUSE,
    pause.RESUME,
    crds.VERB,
    completion.VERB,
    demo.VERB,
    run.VERB,
    version.VERB,
)
