"""`make test`: the default tests in two processes at once, as most of those that need Spark leave a core idle.

The first runs the tests that need Spark, a broker or a registry, and starts one of each. The second runs all others,
and the folders that start processes of their own anyway (tests/conftest.py names them). Its output follows at the end.
Arguments go to both.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile

_PYTEST = [sys.executable, "-m", "pytest"]
_NONE_COLLECTED = 5


def main(arguments: list[str]) -> int:
    """Returns 0 when all tests passed, else the exit code of a pytest that failed."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
        second = subprocess.Popen(
            [*_PYTEST, "-p", "no:cacheprovider", "-m", "not slow and second", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            code = subprocess.call([*_PYTEST, "-m", "not slow and not second", *arguments])
            second_code = second.wait()
        finally:
            second.kill()
        output.seek(0)
        print(
            f"\n== the second process: tests without Spark, and those of faults and Kafka\n\n{output.read()}",
            flush=True,
        )
    codes = {code, second_code}
    return 0 if codes <= {0, _NONE_COLLECTED} and 0 in codes else max(codes - {_NONE_COLLECTED}, default=1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
