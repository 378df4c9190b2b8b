"""Runs `bridge check` under spark-submit.

spark-submit --py-files dist/bridge.zip jobs/check.py conf/orders.yaml
"""

import sys

from bridge.cli.app import main

if __name__ == "__main__":
    code = main(["check", *sys.argv[1:]])
    if code:  # some job runners report any sys.exit as a failure, even with code 0
        sys.exit(code)
