"""`bridge completion`: a completion script for a shell, made from the parser itself, so it never lags behind.

Completed are commands, options, and the values of options with a fixed choice; ids begin with `last`.
"""

import argparse
import re
import shlex
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping

from acp_history_bridge.cli.context import Context
from acp_history_bridge.cli.output import prepare_stdout, write_lines
from acp_history_bridge.cli.parser import command_parsers

__all__ = ["SHELLS", "run", "script"]

_PROGRAMS = ("acp-history-bridge", "bridge")


def run(arguments: Namespace, context: Context) -> int:
    """Print the script."""
    del context
    prepare_stdout()
    write_lines([script(arguments.shell)])
    return 0


def script(shell: str) -> str:
    """The whole script for `bash`, `zsh` or `fish`."""
    return "\n".join(SHELLS[shell](command_parsers()))


def _actions(command: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    yield from command._actions  # noqa: SLF001 - argparse has no public way to its options


def _words(command: argparse.ArgumentParser) -> list[str]:
    """Everything that can stand behind a command."""
    words: list[str] = []
    for action in _actions(command):
        words += action.option_strings or map(str, action.choices or ())
        words += ["last"] if action.dest == "id" else []
    return words


def _choices(commands: Mapping[str, argparse.ArgumentParser]) -> dict[str, list[str]]:
    """Options with a fixed choice, and the choice; no two commands use one differently."""
    return {
        option: [str(choice) for choice in action.choices]
        for command in commands.values()
        for action in _actions(command)
        if action.choices
        for option in action.option_strings
    }


def _bash(commands: Mapping[str, argparse.ArgumentParser]) -> Iterator[str]:
    yield "_acp_history_bridge() {"
    yield '  local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}" words="" command="" word'
    yield '  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do'
    yield '    [[ $word != -* ]] && { command="$word"; break; }'
    yield "  done"
    yield '  case "$previous" in'
    for option, choices in _choices(commands).items():
        yield f'    {option}) COMPREPLY=($(compgen -W {_quoted(choices)} -- "$current")); return ;;'
    yield "  esac"
    yield '  case "$command" in'
    for name, command in commands.items():
        yield f"    {name}) words={_quoted(_words(command))} ;;"
    yield f"    *) words={_quoted([*commands, '--help', '--version'])} ;;"
    yield "  esac"
    yield '  COMPREPLY=($(compgen -W "$words" -- "$current"))'
    yield "}"
    yield f"complete -o default -F _acp_history_bridge {' '.join(_PROGRAMS)}"


def _zsh(commands: Mapping[str, argparse.ArgumentParser]) -> Iterator[str]:
    yield f"#compdef {' '.join(_PROGRAMS)}"
    yield "autoload -U +X bashcompinit && bashcompinit"
    yield from _bash(commands)


def _fish(commands: Mapping[str, argparse.ArgumentParser]) -> Iterator[str]:
    for program in _PROGRAMS:
        for name, command in commands.items():
            about = _quoted([_first_sentence(command.description or "")])
            yield f"complete -c {program} -n __fish_use_subcommand -a {name} -d {about}"
            for action in _actions(command):
                for option in action.option_strings:
                    yield _fish_option(program, name, option, action)


def _fish_option(program: str, name: str, option: str, action: argparse.Action) -> str:
    kind = f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
    values = f" -xa {_quoted(map(str, action.choices))}" if action.choices else " -r" if action.nargs != 0 else ""
    about = _quoted([re.sub(r"\s+", " ", (action.help or "").replace("%%", "%"))])
    return f"complete -c {program} -n '__fish_seen_subcommand_from {name}' {kind}{values} -d {about}"


def _quoted(words: Iterable[str]) -> str:
    return shlex.quote(" ".join(words))


def _first_sentence(text: str) -> str:
    return text.partition(". ")[0].rstrip(".")


SHELLS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
