"""Names of functions whose result is another one when the same row is computed again."""

from __future__ import annotations

__all__ = ["CLOCKS", "NON_DETERMINISTIC"]

# Not deterministic. CLOCKS are called without parentheses.
CLOCKS = frozenset({"CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP"})
NON_DETERMINISTIC = CLOCKS | {
    *("PROCTIME", "NOW", "CURRENT_ROW_TIMESTAMP", "CURRENT_WATERMARK", "SOURCE_WATERMARK", "CURDATE"),
    *("RAND", "RAND_INTEGER", "RANDN", "RANDOM", "RANDSTR", "UNIFORM", "UUID", "SHUFFLE"),
    *("CURRENT_DATABASE", "CURRENT_CATALOG", "CURRENT_SCHEMA", "CURRENT_USER", "SESSION_USER", "USER"),
    *("CURRENT_TIMEZONE", "MONOTONICALLY_INCREASING_ID", "SPARK_PARTITION_ID", "INPUT_FILE_NAME"),
}
