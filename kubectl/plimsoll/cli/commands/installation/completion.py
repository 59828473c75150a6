"""The command ``plimsoll completion``: prints a shell's completion script."""

from enum import StrEnum
from typing import Annotated

from plimsoll.cli.output import print_lines
from plimsoll.commands.parameters import Argument
from plimsoll.commands.verbs import Verb

BASH = r"""# bash completion of plimsoll; load it with: source <(plimsoll completion bash)
_plimsoll() {
    local line current=${COMP_WORDS[COMP_CWORD]}
    COMPREPLY=()
    while IFS= read -r line; do
        case $line in
            :0) compopt -o default ;;
            :*) ;;
            *) COMPREPLY+=("${line%%$'\t'*}") ;;
        esac
    done < <(kubectl_complete-plimsoll "${COMP_WORDS[@]:1:COMP_CWORD-1}" "$current" 2>/dev/null)
}
complete -F _plimsoll plimsoll"""

ZSH = r"""#compdef plimsoll
# zsh completion of plimsoll; load it with: source <(plimsoll completion zsh)
_plimsoll() {
    local line files=0
    local -a values
    while IFS= read -r line; do
        case $line in
            :0) files=1 ;;
            :*) ;;
            *) values+=("${${line//:/\\:}/$'\t'/:}") ;;
        esac
    done < <(kubectl_complete-plimsoll "${(@)words[2,CURRENT]}" 2>/dev/null)
    _describe plimsoll values
    (( files )) && _files
}
compdef _plimsoll plimsoll"""

FISH = r"""# fish completion of plimsoll; load it with: plimsoll completion fish | source
function __plimsoll_complete
    set -l words (commandline -opc) (commandline -ct | string collect --allow-empty)
    for line in (kubectl_complete-plimsoll $words[2..-1] 2>/dev/null)
        switch $line
            case ':0'
                __fish_complete_path (commandline -ct)
            case ':*'
            case '*'
                echo $line
        end
    end
end
complete -c plimsoll -f -a '(__plimsoll_complete)'"""


class Shell(StrEnum):
    """A shell with completion."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


SCRIPTS = {Shell.BASH: BASH, Shell.ZSH: ZSH, Shell.FISH: FISH}


def completion(
    shell: Annotated[Shell, Argument(metavar="SHELL", help="One of bash, zsh and fish.")],
) -> None:
    """Print a script that completes command lines.

    For bash: source <(plimsoll completion bash). Names of policies, pods, nodes and records come from the
    cluster. For kubectl plimsoll, kubectl's own completion runs kubectl_complete-plimsoll.
    """
    print_lines([SCRIPTS[shell]])


VERB = Verb("completion", completion)
