"""Apply an upsert topic to its Delta table: `bridge ingest` for spark-submit.

spark-submit --py-files dist/*.whl jobs/ingest.py conf/orders.yaml
"""

import sys

from bridge.cli import main

if __name__ == "__main__":
    raise SystemExit(main(["ingest", *sys.argv[1:]]))
