"""`make test`: the default tests in two processes at once, as most that need Spark or a broker leave a core idle.

The one in front runs what needs Spark, a broker or a registry, which it starts once; the other runs the rest, and its
output follows at the end. Arguments go to both.
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
        rest = subprocess.Popen(
            [*_PYTEST, "-p", "no:cacheprovider", "-m", "not slow and not engines", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            code = subprocess.call([*_PYTEST, "-m", "not slow and engines", *arguments])
            rest_code = rest.wait()
        finally:
            rest.kill()
        output.seek(0)
        print(f"\n== the tests without Spark and brokers\n\n{output.read()}", flush=True)
    codes = {code, rest_code}
    return 0 if codes <= {0, _NONE_COLLECTED} and 0 in codes else max(codes - {_NONE_COLLECTED}, default=1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
