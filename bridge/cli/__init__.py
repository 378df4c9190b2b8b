"""The command line. The `bridge` script and the scripts in jobs/ call the same `main`."""

from bridge.cli.app import main

__all__ = ["main"]
