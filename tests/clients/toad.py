"""Toad, installed with the Python that it wants."""

from pathlib import Path

from tests.clients.install import debian_packages, debian_program, offline, python_packages

__all__ = ["install_toad"]

_PACKAGE = "batrachian-toad==0.6.20"
_PYTHON = "3.14"
_DRIVER = Path(__file__).parent / "drivers" / "toad_app.py"


def install_toad(directory: Path) -> tuple[str, ...]:
    """Install it; the command that runs its driver is returned, without a network: Toad would report its use."""
    site = python_packages(directory, _PYTHON, _PACKAGE)
    root = debian_packages(directory / "debian", f"python{_PYTHON}")
    return (*offline(), *debian_program(root, f"python{_PYTHON}"), str(_DRIVER), str(site))
