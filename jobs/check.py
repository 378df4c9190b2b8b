"""Run a table's quality suite: `bridge check` for spark-submit.

spark-submit --py-files dist/*.whl jobs/check.py conf/orders.yaml
"""

import sys

from bridge.cli.app import main

if __name__ == "__main__":
    code = main(["check", *sys.argv[1:]])
    if code:  # a clean end stays silent: some job runners take any sys.exit for a failure
        sys.exit(code)
