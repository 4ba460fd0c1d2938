"""Histories of CLI coding agents, served as one Agent Client Protocol agent.

Importing the package costs nothing: an editor starts it often, and `initialize` must be answered at once.
"""

__all__ = ["__version__"]

__version__ = "0.1.0"
