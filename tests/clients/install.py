"""Other people's programs, each installed below a temporary directory by its own registry's client.

Policy:

- Nothing outside that directory changes, and nobody has to be root: Debian's packages are unpacked, not installed, and
  their programs are started by the dynamic linker that comes with them.
- What cannot be had here skips the test, with the installer's own words as the reason.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

__all__ = ["debian_packages", "debian_program", "npm_packages", "offline", "python_packages"]

_TIMEOUT = 240
_SUITE = "forky"
_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
_APT = """\
Dir::State "{0}/state";
Dir::State::status "{0}/status";
Dir::Cache "{0}/cache";
Dir::Etc::sourcelist "{0}/sources.list";
Dir::Etc::sourceparts "-";
Dir::Etc::preferences "-";
Dir::Etc::preferencesparts "-";
APT::Install-Recommends "false";
APT::Sandbox::User "";
Acquire::Languages "none";
Acquire::Check-Valid-Until "false";
"""


def npm_packages(directory: Path, *packages: str) -> Path:
    """Install npm packages; their `node_modules` is returned."""
    npm = _tool("npm")
    _tool("node")
    _run([npm, "install", "--no-audit", "--no-fund", "--prefix", str(directory), *packages], directory)
    return directory / "node_modules"


def python_packages(directory: Path, version: str, *packages: str) -> Path:
    """Install wheels for another version of Python; a directory for its `sys.path` is returned."""
    target = directory / "site"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(target)]
    _run([*pip, "--python-version", version, "--only-binary=:all:", *packages], directory)
    return target


def debian_packages(directory: Path, *packages: str) -> Path:
    """Unpack Debian packages with all they depend on; the root directory they lie in is returned."""
    apt = _tool("apt-get")
    if not Path(_KEYRING).exists():
        pytest.skip("this is no Debian: its archive keys are missing")
    for name in ("state/lists/partial", "cache/archives/partial"):
        (directory / name).mkdir(parents=True)
    (directory / "status").touch()
    source = f"deb [signed-by={_KEYRING}] {_mirror(apt)} {_SUITE} main\n"
    (directory / "sources.list").write_text(source, encoding="utf-8")
    (directory / "apt.conf").write_text(_APT.format(directory), encoding="utf-8")
    variables = {"APT_CONFIG": str(directory / "apt.conf")}
    _run([apt, "update"], directory, **variables)
    _run([apt, "install", "--yes", "--download-only", *packages], directory, **variables)
    root = directory / "root"
    for package in sorted((directory / "cache" / "archives").glob("*.deb")):
        _run(["dpkg-deb", "--extract", str(package), str(root)], directory)
    return root


def _mirror(apt: str) -> str:
    """The archive that this machine itself installs from."""
    listed = subprocess.run(
        [apt, "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"], capture_output=True, check=False
    )
    archives = [line for line in listed.stdout.decode("utf-8").splitlines() if line.rstrip("/").endswith("/debian")]
    if not archives:
        pytest.skip("this machine names no Debian archive")
    return archives[0]


def debian_program(root: Path, name: str) -> tuple[str, ...]:
    """How a program of an unpacked Debian is started; what it starts in turn is this machine's own."""
    (linker,) = root.glob("usr/lib64/ld-linux-*.so.*")
    (libraries,) = root.glob("usr/lib/*-linux-gnu")
    return (str(linker), "--library-path", str(libraries), str(root / "usr" / "bin" / name))


def offline() -> tuple[str, ...]:
    """What to put before a command so that it has no network; skips the test where that cannot be done."""
    prefix = (_tool("unshare"), "--map-root-user", "--net", "--")
    if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("processes cannot be kept from the network here (unshare --net)")
    return prefix


def _tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def _run(command: Sequence[str], directory: Path, **variables: str) -> None:
    environment = {**os.environ, "HOME": str(directory), "npm_config_cache": str(directory / "npm-cache"), **variables}
    try:
        done = subprocess.run(
            command, cwd=directory, env=environment, capture_output=True, timeout=_TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"{' '.join(command[:2])} took more than {_TIMEOUT} s")
    if done.returncode != 0:
        last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        pytest.skip(f"{' '.join(command[:2])}: {' '.join(last)}")
