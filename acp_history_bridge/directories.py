"""Where the bridge keeps its own files: configuration, state (logs); never below a store of another tool.

platformdirs knows each system's habits. Older versions of it (4.5) believe a relative `HOME` or XDG variable, which would
put files wherever an editor was started; such an answer is replaced by the usual place.
"""

from pathlib import Path

__all__ = ["config_file", "state_directory"]

_NAME = "acp-history-bridge"


def config_file(home: Path) -> Path:
    """The settings file; it need not exist."""
    import platformdirs

    return _absolute(platformdirs.user_config_path(_NAME, appauthor=False), home / ".config") / "config.toml"


def state_directory(home: Path) -> Path:
    """The directory of logs; it need not exist."""
    import platformdirs

    return _absolute(platformdirs.user_state_path(_NAME, appauthor=False), home / ".local" / "state")


def _absolute(path: Path, fallback: Path) -> Path:
    return path if path.is_absolute() else fallback / _NAME
