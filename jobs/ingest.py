"""Apply an upsert topic to its Delta table: `bridge ingest` for spark-submit.

spark-submit --py-files dist/*.whl jobs/ingest.py conf/orders.yaml
"""

import sys

from bridge.cli.app import main

if __name__ == "__main__":
    code = main(["ingest", *sys.argv[1:]])
    if code:  # a clean end stays silent: some job runners take any sys.exit for a failure
        sys.exit(code)
