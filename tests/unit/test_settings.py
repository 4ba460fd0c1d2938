"""Settings: where values come from, what is refused, and that the documentation lists every one."""

import subprocess
import sys
from pathlib import Path

import pytest

from acp_history_bridge.adapter import Environment
from acp_history_bridge.errors import ConfigurationError
from acp_history_bridge.settings import VARIABLE_PREFIX, Settings, effective, load_settings

DOCUMENTATION = Path(__file__).parents[2] / "docs" / "configuration.md"


def _environment(**variables: str) -> Environment:
    return Environment(
        home=Path("/home/ada"), variables={VARIABLE_PREFIX + name: text for name, text in variables.items()}
    )


def _file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_without_file_and_variables_everything_has_its_default() -> None:
    """Nothing set means defaults, and no source is named."""
    assert load_settings(_environment()) == (Settings(), {})


def test_defaults_do_not_load_pydantic() -> None:
    """An editor that starts the agent with nothing configured does not pay for validation."""
    code = (
        "import sys; from pathlib import Path; from acp_history_bridge.adapter import Environment;"
        "from acp_history_bridge.settings import load_settings; load_settings(Environment(Path('/')));"
        "sys.exit('pydantic' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_file_sets_values_and_is_named_as_their_source(tmp_path: Path) -> None:
    """A value of the file is used, and its source is the file's path."""
    path = _file(tmp_path, 'pushes = "open"\n[watch]\nmode = "poll"\n')

    settings, sources = load_settings(_environment(), path)

    assert (settings.pushes, settings.watch.mode) == ("open", "poll")
    assert sources == {"pushes": str(path), "watch.mode": str(path)}


def test_a_variable_wins_over_the_file(tmp_path: Path) -> None:
    """The environment is nearer to the user than the file."""
    settings, sources = load_settings(_environment(PAGE_SIZE="7"), _file(tmp_path, "page_size = 9\n"))

    assert (settings.page_size, sources["page_size"]) == (7, "ACP_HISTORY_BRIDGE_PAGE_SIZE")


def test_lists_and_switches_can_be_written_as_variables() -> None:
    """A list is separated by commas; a switch takes the usual words."""
    settings, _ = load_settings(_environment(TOOLS="codex, claude-code,", REPLAY_FOLLOW="off"))

    assert settings.tools == ("codex", "claude-code")
    assert settings.replay.follow is False


def test_the_variable_can_name_another_file(tmp_path: Path) -> None:
    """`ACP_HISTORY_BRIDGE_CONFIG` replaces the platform's place."""
    settings, _ = load_settings(_environment(CONFIG=str(_file(tmp_path, "headless = false\n"))))

    assert settings.headless is False


def test_a_named_file_that_is_missing_is_an_error(tmp_path: Path) -> None:
    """Somebody who names a file wants it to be read."""
    with pytest.raises(ConfigurationError, match="no such file"):
        load_settings(_environment(CONFIG=str(tmp_path / "none.toml")))


def test_a_missing_file_in_the_usual_place_is_fine(tmp_path: Path) -> None:
    """Most people have no configuration file."""
    assert load_settings(_environment(), tmp_path / "config.toml")[0] == Settings()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("pages = 3\n", "pages"),
        ('[watch]\nmode = "never"\n', r"watch\.mode"),
        ("[watch]\ndebounce_ms = 1\n", r"watch\.debounce_ms.*10"),
        ("watch = 3\n", "watch"),
        ("= broken\n", "config.toml"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(tmp_path: Path, text: str, complaint: str) -> None:
    """Unknown names, wrong values and broken files are refused with file and setting."""
    with pytest.raises(ConfigurationError, match=complaint) as caught:
        load_settings(_environment(), _file(tmp_path, text))

    assert "config.toml" in str(caught.value)


def test_a_wrong_variable_is_named() -> None:
    """The message says which variable to correct."""
    with pytest.raises(ConfigurationError, match="ACP_HISTORY_BRIDGE_WATCH_DEBOUNCE_MS"):
        load_settings(_environment(WATCH_DEBOUNCE_MS="soon"))


def test_a_plain_value_where_a_table_belongs_does_not_break_variables(tmp_path: Path) -> None:
    """A variable for a setting inside the table leaves the complaint to validation."""
    with pytest.raises(ConfigurationError, match="watch"):
        load_settings(_environment(WATCH_MODE="off"), _file(tmp_path, "watch = 3\n"))


def test_the_effective_list_names_value_default_and_source() -> None:
    """`bridge config` prints each setting with where it comes from."""
    settings, sources = load_settings(_environment(WATCH_MODE="off"))

    shown = {setting.name: setting for setting in effective(settings, sources)}

    assert (shown["watch.mode"].value, shown["watch.mode"].default) == ("off", "auto")
    assert shown["watch.mode"].source == "ACP_HISTORY_BRIDGE_WATCH_MODE"
    assert shown["page_size"].source == "default"


def test_every_setting_is_documented_with_its_default() -> None:
    """The table in docs/configuration.md and the code cannot drift apart."""
    documented = DOCUMENTATION.read_text(encoding="utf-8")

    for setting in effective(Settings(), {}):
        default = str(setting.default).lower() if isinstance(setting.default, bool) else setting.default
        shown = "(empty)" if default == () else f"`{default}`"
        assert f"| `{setting.name}` | {shown} | {setting.text} |" in documented
