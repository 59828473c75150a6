"""The commands, a module each, which is imported when its command is used (plimsoll.commands.program).

To add one: write commands/VERB.py with ``def VERB(options: Options, ...)``, its parameters declared as
``plimsoll.commands.parameters`` reads them (its docstring is the help), which prints through cli/output.py
and raises UserError; end it with ``VERB = Verb(name, function, flags)`` or a ``VerbGroup``, and name that in
``VERBS`` with the first line of its help. Tests of help, flags and errors then cover it.
"""

from types import MappingProxyType

#: Module, attribute and summary of each command, in the order in which the help shows them: ask, look ahead,
#: configure, act, the installation. The help of all commands needs none of their modules.
VERBS = MappingProxyType(
    {
        "check": (
            "check:VERB",
            "Find what is wrong with an installation or missing in it.",
        ),
        "explain": (
            "explain:VERB",
            "Answer why a pod is pending, stays, or was moved.",
        ),
        "top": (
            "top:VERB",
            "Show what nodes and pods use, and how much of it is known.",
        ),
        "plan": ("plan:VERB", "Show what policies would move if they ran now."),
        "history": (
            "history:VERB",
            "Show what moved, why, how it ended, and what moved again.",
        ),
        "fit": (
            "fit:VERB",
            "Say how many pods of workloads fit, where, and what stops more.",
        ),
        "whatif": (
            "whatif:VERB",
            "Preview a drain, new nodes or other changes of the cluster.",
        ),
        "drain": ("drain:VERB", "Empty nodes by proven moves, replacement first where possible."),
        "convert": (
            "convert:VERB",
            "Convert configurations of other schedulers, PodGroups and queues.",
        ),
        "snapshot": (
            "snapshot:VERB",
            "Save the state of a cluster in a file, and show such files.",
        ),
        "replay": (
            "replay:VERB",
            "Replay a snapshot in virtual time under policies.",
        ),
        "validate": (
            "validate:VERB",
            "Say whether the operator would accept documents, and why not.",
        ),
        "pools": ("pools:VERB", "Write the policies by which operators share a cluster."),
        "approve": ("proposals:APPROVE", "Approve moves that wait for an answer."),
        "reject": ("proposals:REJECT", "Reject moves that wait for an answer."),
        "pause": (
            "pause:PAUSE",
            "Stop the moves of all policies, or suspend policies.",
        ),
        "resume": ("pause:RESUME", "Continue what pause has stopped."),
        "run-now": ("pause:RUN_NOW", "Start a run of policies now, once."),
        "adopt": ("adopt:VERB", "Write what adopts pods as policies say, or remove it."),
        "release": ("release:VERB", "Hand pods that wait for a dead Plimsoll to default-scheduler."),
        "crds": ("installation.crds:VERB", "Print the custom resource definitions."),
        "completion": (
            "installation.completion:VERB",
            "Print a script that completes command lines.",
        ),
        "demo": (
            "installation.demo:VERB",
            "Watch a simulated cluster placed, drifting, mended.",
        ),
    }
)
