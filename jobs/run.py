"""Runs any command of `bridge` under spark-submit, with its options and exit codes.

spark-submit --py-files dist/bridge.zip jobs/run.py verify conf/orders.yaml
"""

import sys

from bridge.cli.app import main

if __name__ == "__main__":
    code = main(sys.argv[1:])
    if code:  # some job runners report any sys.exit as a failure, even with code 0
        sys.exit(code)
