"""Where the bridge gives another value than Flink, for a reason; docs/sql-functions.md shows them."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["DIFFERENCES", "Difference"]


@dataclass(frozen=True)
class Difference:
    """A row of the table, and the expressions that it is about."""

    what: str
    flink: str
    bridge: str
    about: re.Pattern[str]
    """Matches the expression, then `=>`, then the values of its columns in this row."""


def _about(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.DOTALL)


DIFFERENCES = (
    Difference(
        "a comparison with NaN",
        "FALSE; `<>` is TRUE",
        "NaN equals NaN, and is the greatest number, also for GROUP BY and ORDER BY",
        _about(r"^([^()]* (=|<>|<|>=|>|<=|IN|BETWEEN) |MAP_UNION).*=>.*NaN"),
    ),
    Difference(
        "NaN or infinity in `ROUND` and `TRUNCATE`, and in `TRY_CAST` to DECIMAL",
        "an error",
        "the number itself; NULL for `TRY_CAST`",
        _about(r"^(ROUND|TRUNCATE|TRY_CAST)\b.*=>.*(NaN|Infinity)|^TRUNCATE.*(E38|1e300)"),
    ),
    Difference(
        "a text with a day that its month lacks, such as 2023-02-29",
        "another day",
        "no time",
        _about(r"2023-02-29"),
    ),
    Difference(
        "a text whose year has fewer than four digits, as DATE",
        "a day of that year",
        "no day",
        _about(r"^(TRY_)?CAST\(.* AS DATE\)=>.*\b\d{1,3}\b|^(TRY_)?CAST\(' ?\d{1,3}' AS DATE"),
    ),
    Difference(
        "`FLOOR`, `CEIL`, `FROM_UNIXTIME` and sums of times before 15 October 1582 or after the year 9999",
        "days of the Julian calendar; a year of four digits",
        "days of the Gregorian calendar",
        _about(
            r"^(FLOOR|CEIL|FROM_UNIXTIME|TIMESTAMPADD|CONVERT_TZ)\(.*(0001-01-01|-62135596800|1582|9999-12-31|253402300799)|"
            r" INTERVAL .*(0001-01-01|9999-12-31)|(0001-01-01|9999-12-31).* INTERVAL "
        ),
    ),
    Difference(
        "a text that a format does not fit digit by digit (`UNIX_TIMESTAMP`, `TO_DATE`, `TO_TIMESTAMP`)",
        "a time of the part that fits",
        "no time",
        _about(r"^(UNIX_TIMESTAMP|TO_DATE|TO_TIMESTAMP|DATE_FORMAT)\(.*, '"),
    ),
    Difference(
        "keys for `MAP_FROM_ARRAYS`: NULL; `0.0` and `-0.0`, equal BYTES or ARRAYs; one twice, for `CARDINALITY`, "
        "`MAP_KEYS` and the like",
        "a key; two keys; counted twice",
        "an error; one; once, with its last value",
        _about(
            r"MAP_FROM_ARRAYS\(.*(None|NULL|'-?0\.0'|ARRAY\[c_bytes|X')|"
            r"^(CARDINALITY|MAP_[KVE]\w+)\(MAP_FROM_ARRAYS"
        ),
    ),
    Difference(
        "digits outside of ASCII, `İ`, characters beyond 16 bits in `LPAD`, `t` as DECIMAL, blanks in base64",
        "digits; `i`; two characters; 0; an error",
        "no digits; `i̇`; one; an error; left out",
        _about(
            "[\u0660-\u0669]|^(TRY_)?CAST.*DECIMAL.*=>.*'?t'?|^LOWER.*İ|"
            "^[LR]PAD.*😀|CHAR\\(4\\).*(😀|f09f9880)|FROM_BASE64|CAST\\('t' AS"
        ),
    ),
    Difference(
        "`ROUND` of a DECIMAL that then has more than 38 digits",
        "NULL",
        "an error",
        _about(r"^ROUND\(.*9{38}"),
    ),
    Difference(
        "zeros at the end of numbers in `JSON_QUERY`",
        "kept",
        "left out",
        _about(r"^JSON_QUERY"),
    ),
)
