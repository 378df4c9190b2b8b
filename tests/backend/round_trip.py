"""A client of Spark Connect: topic -> table -> topic, both compared, in one session of the server in SPARK_REMOTE.

`python -m tests.backend.round_trip INGEST PUBLISH ...` prints how many records each pipeline file has read or sent, and
a checksum for each comparison that found both sides equal.
"""

from __future__ import annotations

import json
import sys

from bridge import ingest, load, publish, verify
from bridge.session import build_session


def main(files: list[str]) -> None:
    """Run the first file as an ingest and the others as publishes. Raises their errors."""
    spark = build_session("round-trip")
    taken, *sent = map(load, files)
    records = [ingest(spark, taken).records_in, *(publish(spark, each).records_out for each in sent)]
    proofs = [verify(spark, each, direction="publish") for each in sent]
    proofs.append(verify(spark, taken, direction="ingest"))
    sums = [proof.comparison.table_checksum if proof.comparison.equal else "differs" for proof in proofs]
    print(json.dumps({"records": records, "sums": sums}))


if __name__ == "__main__":
    main(sys.argv[1:])
