"""The process environment, read once and handed to everything that needs it.

Editors start agents with poor environments (avante passes only PATH), so the home directory comes from the password
database when `HOME` is unset or relative, and empty or relative XDG values count as unset.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from acp_history_bridge.adapter import Environment

__all__ = ["current_environment"]


def current_environment(variables: Mapping[str, str] | None = None) -> Environment:
    """Describe the machine this process runs on."""
    variables = dict(os.environ if variables is None else variables)
    return Environment(home=_home(variables), variables=variables, platform=sys.platform)


def _home(variables: Mapping[str, str]) -> Path:
    named = variables.get("USERPROFILE" if sys.platform == "win32" else "HOME", "")
    if named and Path(named).is_absolute():
        return Path(named)
    return _home_of_user()


def _home_of_user() -> Path:
    try:
        import pwd
    except ImportError:  # Windows
        return Path.home()
    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:  # a user id without an entry, as in containers
        return Path("/")
