"""Runs commands of users one after the other in one process, as each of its own would start and connect anew.

`python -m tests.backend.commands` reads a command of `bridge` per line, its arguments as JSON, and answers each with a
line: the exit code, and what the command has printed.
"""

from __future__ import annotations

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout

from bridge.cli.app import main


def run(arguments: list[str]) -> tuple[int, str]:
    """Run one command; its exit code and its words."""
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        code = main(arguments)
    return code, said.getvalue()


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), flush=True)
