"""Where the bridge keeps its own files: configuration, index, decisions, logs; never below a store of another tool.

platformdirs knows each system's habits. Older versions of it (4.5) believe a relative `HOME` or XDG variable, which
would put files wherever an editor was started; such an answer is replaced by the usual place.
"""

from pathlib import Path

__all__ = ["cache_directory", "config_file", "data_directory", "state_directory"]

_NAME = "acp-history-bridge"


def config_file(home: Path) -> Path:
    """The settings file; it need not exist."""
    import platformdirs

    return _absolute(platformdirs.user_config_path(_NAME, appauthor=False), home / ".config") / "config.toml"


def cache_directory(home: Path) -> Path:
    """The directory of the indexes, which can be made again at any time; it need not exist."""
    import platformdirs

    return _absolute(platformdirs.user_cache_path(_NAME, appauthor=False), home / ".cache")


def data_directory(home: Path) -> Path:
    """The directory of what the user decided, which cannot be made again; it need not exist."""
    import platformdirs

    return _absolute(platformdirs.user_data_path(_NAME, appauthor=False), home / ".local" / "share")


def state_directory(home: Path) -> Path:
    """The directory of logs; it need not exist."""
    import platformdirs

    return _absolute(platformdirs.user_state_path(_NAME, appauthor=False), home / ".local" / "state")


def _absolute(path: Path, fallback: Path) -> Path:
    return path if path.is_absolute() else fallback / _NAME
