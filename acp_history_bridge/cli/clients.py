"""The clients that `bridge setup` knows: where each keeps its configuration, and what has to stand there.

docs/clients.md says which of them were run.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from acp_history_bridge.adapter import Environment

__all__ = ["CLIENTS", "Client", "json_path"]

_NAME = "History Bridge"

Place = Callable[[Environment], Path]


@dataclass(frozen=True, slots=True)
class Client:
    """One client.

    Attributes:
        name: What `bridge setup` calls it.
        title: As people write it.
        hint: What to do with the snippet, and then.
        text: The snippet, with `@PROGRAM@`, `@ARGUMENTS@` (after commas), `@WORDS@` (after blanks) and
            `@LINE@` for the command; empty for JSON.
        file: Its configuration file, if that is JSON.
        keys: Where in the JSON the entry goes.
        entry: The entry, made from the command.
    """

    name: str
    title: str
    hint: str
    text: str = ""
    file: Place | None = None
    keys: tuple[str, ...] = ()
    entry: Callable[[Sequence[str]], object] | None = None

    def snippet(self, command: Sequence[str]) -> str:
        """What has to stand in the configuration."""
        if self.entry is not None:
            return json.dumps(json_path(self.keys, self.entry(command)), indent=2, ensure_ascii=False)
        program, *arguments = (json.dumps(word, ensure_ascii=False) for word in command)
        return (
            self.text.replace("@PROGRAM@", program)
            .replace("@ARGUMENTS@", ", ".join(arguments))
            .replace("@WORDS@", " ".join(arguments))
            .replace("@LINE@", json.dumps(" ".join(command), ensure_ascii=False))
        )


def json_path(keys: Sequence[str], value: object) -> Mapping[str, object]:
    """An object that holds the value below these keys."""
    first, *rest = keys
    return {first: json_path(rest, value) if rest else value}


def _server(command: Sequence[str]) -> dict[str, object]:
    return {"command": command[0], "args": list(command[1:]), "env": {}}


def _zed_server(command: Sequence[str]) -> dict[str, object]:
    return {"type": "custom", **_server(command)}


def _acpx_agent(command: Sequence[str]) -> dict[str, object]:
    return {"argv": list(command)}


def _configuration(environment: Environment) -> Path:
    named = environment.variables.get("XDG_CONFIG_HOME", "")
    return Path(named) if Path(named).is_absolute() else environment.home / ".config"


def _zed_file(environment: Environment) -> Path:
    return _configuration(environment) / "zed" / "settings.json"


def _jetbrains_file(environment: Environment) -> Path:
    return environment.home / ".jetbrains" / "acp.json"


def _acpx_file(environment: Environment) -> Path:
    return environment.home / ".acpx" / "config.json"


def _vscode_file(environment: Environment) -> Path:
    if environment.platform == "darwin":
        return environment.home / "Library" / "Application Support" / "Code" / "User" / "settings.json"
    return _configuration(environment) / "Code" / "User" / "settings.json"


_CODECOMPANION = """\
require("codecompanion").setup({ adapters = { acp = { history_bridge = function()
  local helpers = require("codecompanion.adapters.acp.helpers")
  return { name = "history_bridge", formatted_name = "History Bridge", type = "acp",
    roles = { llm = "assistant", user = "user" },
    commands = { default = { @PROGRAM@, @ARGUMENTS@ } },
    defaults = { mcpServers = {}, timeout = 20000 }, env = {},
    parameters = { protocolVersion = 1, clientCapabilities = { fs = { readTextFile = true, writeTextFile = true } },
      clientInfo = { name = "CodeCompanion.nvim", version = "1.0.0" } },
    handlers = { setup = function() return true end,
      form_messages = function(self, m, c) return helpers.form_messages(self, m, c) end, on_exit = function() end } }
end } } })"""

_AVANTE = """\
require("avante").setup({ provider = "history-bridge",
  acp_providers = { ["history-bridge"] = {
    command = @PROGRAM@, args = { @ARGUMENTS@ }, env = { HOME = os.getenv("HOME") } } } })"""

_AGENT_SHELL = """\
(setq agent-shell-session-restore-verbosity 'full)
(add-to-list 'agent-shell-agent-configs
  (lambda () (agent-shell-make-agent-config :identifier 'history-bridge :buffer-name "History" :mode-line-name "History"
    :shell-prompt "History> " :shell-prompt-regexp "History> "
    :client-maker (lambda (buffer)
      (acp-make-client :context-buffer buffer :command @PROGRAM@ :command-params '(@WORDS@))))))"""

CLIENTS: tuple[Client, ...] = (
    Client(
        "zed",
        "Zed",
        "then: Threads Sidebar, Thread History, import button",
        file=_zed_file,
        keys=("agent_servers", _NAME),
        entry=_zed_server,
    ),
    Client(
        "jetbrains",
        "JetBrains IDEs",
        "then: AI Chat, choose History Bridge",
        file=_jetbrains_file,
        keys=("agent_servers", _NAME),
        entry=_server,
    ),
    Client(
        "vscode",
        "VS Code, ACP Client",
        "then: the ACP Client view",
        file=_vscode_file,
        keys=("acp.agents", _NAME),
        entry=_server,
    ),
    Client(
        "acpx",
        "acpx",
        "then: acpx history sessions list",
        file=_acpx_file,
        keys=("agents", "history"),
        entry=_acpx_agent,
    ),
    Client("codecompanion", "Neovim, CodeCompanion", "in init.lua; then /resume in a fresh chat", _CODECOMPANION),
    Client("avante", "Neovim, avante.nvim", "in init.lua", _AVANTE),
    Client("agent-shell", "Emacs, agent-shell", "in init.el; then M-x agent-shell", _AGENT_SHELL),
    Client("toad", "Toad", "run this in the project's directory", "toad acp @LINE@ --project-dir ."),
    Client(
        "obsidian",
        "Obsidian, Agent Client",
        "in Settings, Agent Client, Custom Agents",
        "Path: @PROGRAM@\nArguments, one per line: @WORDS@",
    ),
)
