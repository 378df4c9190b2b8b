"""The command line: one verb per pipeline operation. jobs/ and the `bridge` script call the same `main`."""

from bridge.cli.app import main

__all__ = ["main"]
