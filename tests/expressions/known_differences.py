"""Where the bridge gives another value than Flink, for a reason; docs/sql-functions.md shows them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from tests.expressions.vectors import Vector, given


@dataclass(frozen=True)
class Difference:
    """A row of the table, and the values that it is about."""

    what: str
    flink: str
    bridge: str
    about: re.Pattern[str]
    """Matches the expression, `=>`, the values of its columns in this row, `=>`, and Flink's value. Each match really
    differs, as the slow test of all vectors asserts."""


def _about(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.DOTALL)


def is_known(vector: Vector, row: int) -> bool:
    """Whether the value of this row is a known difference."""
    value = json.dumps(vector.values[row], ensure_ascii=False)
    text = f"{vector.expression}=>{given(vector.expression, row)}=>{value}"
    return any(difference.about.search(text) for difference in DIFFERENCES)


_EARLY = "^(?=.*'0001-01-01)"
DIFFERENCES = (
    Difference(
        "a comparison with NaN; of `0.0` with `-0.0` in `ARRAY_DISTINCT` and `ARRAY_UNION`; of BYTES with several "
        "constants",
        "FALSE, `<>` is TRUE; equal; never equal",
        "NaN equals NaN, and is the greatest number, also for GROUP BY, ORDER BY and keys of a map; two items; equal "
        "or not",
        _about(
            r"^c_\w+ >=? [^ =]+=>'NaN'(?!, 'NaN').*=>false",
            r"^c_\w+ <=? c_\w+=>(?!'NaN')[^,]*, 'NaN'=>false",
            "^MAP_UNION.*=>'NaN', 'NaN'=>",
            r"^ARRAY_(?!MAX|MIN|SORT|DISTINCT|UNION).*=>'NaN', ",
            r"^ARRAY_MIN\(ARRAY\[c_d, c_d2\]\)=>'NaN', ",
            r"^ARRAY_(DISTINCT|UNION)\((?!ARRAY\[c_d, c_d2\]\)).*=>'NaN', ",
            r"^c_vb (IN|NOT IN|=) .*X'.*X'.*=>'(00)?'(, |=>)",
            r"^c_bi (NOT )?IN .*X'.*X'.*=>'6869'",
            r"^ARRAY_(DISTINCT|UNION)\(ARRAY.*-c_d.*=>'-?0\.0', ",
        ),
    ),
    Difference(
        "`TRY_CAST` of NaN or infinity to DECIMAL; `ROUND` of them in an operator whose other operand is NULL; "
        "a failing value that COALESCE and IFNULL do not need",
        "an error",
        "NULL; NULL; the first value",
        _about(
            "^TRY_CAST.* AS (ARRAY<)?DECIMAL.*=>.*(NaN|Infinity)",
            r"ROUND\(c_d.* / .*=>.*Infinity.*''=>.*error",
        ),
    ),
    Difference(
        "a text with a day that its month lacks, such as 29 Feb 2023, in `TO_TIMESTAMP` by a format with names",
        "the last day of the month",
        "NULL",
        _about(r"^TO_TIMESTAMP\('29 Feb 2023"),
    ),
    Difference(
        "a text that does not fit the format: of `TO_DATE`; behind its end, of `UNIX_TIMESTAMP` with names or zones; "
        "a year of ten digits and more",
        "a day in the year 1705471; the time; an error",
        "NULL; no time; NULL",
        _about(r'TO_DATE\(.*=>.*"(\+170)?5471-09-27', r"^UNIX_TIMESTAMP\('[^']*( x|M\.)', '[^']*(MMM|a)"),
    ),
    Difference(
        "times before 15 October 1582 in `FLOOR`, `CEIL`, `FROM_UNIXTIME`, `UNIX_TIMESTAMP`, `TO_DATE` with a format; "
        "of the year 0 in `DATE_FORMAT`, and before 1900 in `CONVERT_TZ`, of texts",
        "days of the Julian calendar; of the year 1; whole hours from Greenwich",
        "days of the Gregorian calendar; of the year 0; the mean time of the place",
        _about(
            r"^FROM_UNIXTIME\((?!.*'HH:mm').*-62135596800",
            rf"{_EARLY}(FLOOR|CEIL)\(.* TO WEEK\)=>",
            rf"{_EARLY}CEIL\(.* TO (MONTH|QUARTER|YEAR)\)=>",
            rf"{_EARLY}(FLOOR|CEIL)\((c_day|.*AS DATE\)) TO DAY\)=>",
            r"^(UNIX_TIMESTAMP|TO_DATE)\(c_time_text2, 'yyyy-MM-dd'\)=>'-?0001-01-01'",
            r"^UNIX_TIMESTAMP\('(24-0|0000-0|12024-|-2024-).*=>.*=>-(?!922)\d{11}",
            r"^TO_DATE\('(24-0|0000-0|12024-|-2024-).*, 'y.*=>.*time\": \"(-|0|12\d\d-)",
            r"^(DATE_FORMAT\('0000-01-02 |CONVERT_TZ\('(24-01|0000-01-02 )).*=>\"",
        ),
    ),
    Difference(
        "times after the year 9999 or before the year 0, as texts and constants",
        "`10000-01-01`; constants lose a digit, or are an error",
        "`+10000-01-01`",
        _about(
            '=>"10000-',
            r'^(?!.*c_).*9999-12-31.*=>\{"time": "000[01]-',
            r"(IllegalArgumentException|DateTimeException): (000/-|Year out of range|Invalid date format)",
        ),
    ),
    Difference(
        "keys of a map: NULL; `0.0` and `-0.0`, equal BYTES or ARRAYs; one twice, for `CARDINALITY` and `MAP_KEYS`",
        "a key; two keys; counted twice",
        "an error; one; once, with its last value",
        _about(
            r'MAP.*=>\{"map": (\[\[null|.*\], \[null)',
            r"^(CARDINALITY|MAP_KEYS)\(MAP_FROM_ARRAYS\(ARRAY\[(?P<key>.+?), (?P=key)\]",
            r"^CARDINALITY\(MAP\[.*=>(None, |-?\d+, '[^=]*', None, |(?P<number>-?\d+), .*, (?P=number), ')",
            r"^(CARDINALITY\()?MAP\[([^,]*, [^,]*, )?CAST\(NULL .*=>=>[^n]*$",
            r"^MAP\[c_text, c_d, .*\['l'\]=>(None, |.*, None=>)",
            r'^MAP.*=>\{"map": .*"-?0\.0"\}.*"-?0\.0"\}',
            r'^MAP_FROM_ARRAYS\(ARRAY\[(c_bytes|CAST\(X).*=>\{"map": .*bytes.*bytes',
        ),
    ),
    Difference(
        "zeros at the end of numbers in `JSON_QUERY`",
        "kept",
        "left out",
        _about(r'^JSON_QUERY.*=>"[^>]*1\.50'),
    ),
    Difference(
        "a character beyond 16 bits, such as 😀, in `LPAD`, `RPAD`, CHAR(n) and `SPLIT` by an empty text",
        "two characters",
        "one",
        _about(r"^LPAD\(c_text, 8, .*=>'[^']*😀", r'^(TRY_)?CAST\(.* AS CHAR\(4\)\)=>.*=>"😀  "$'),
    ),
    Difference(
        "constants alone, which Flink's planner computes: a FLOAT; `-0.0`; CHAR(n); NULL, infinity, division by zero; "
        "1e300 as an integer; seconds of TIMESTAMP_LTZ before 1970; a key that `MAP[…]` lacks; "
        "an array with NULL and itself",
        "seven digits; `0.0`; cut to n; an error; 0; cut downwards; -1; equal",
        "the values of columns",
        _about(
            r"^(?!.*c_).*AS FLOAT\).*=>.*(67772[12]E|355444E7|1474839E9|402823E38|40282306|401298E-45)",
            r"^(?!.*c_).*AS FLOAT\).*=>.*(5\.96046305|2\.93873640|1\.23456799E11)",
            r"^(?!.*c_).*'(1677|3\.402).* AS FLOAT\).*=>.*(16777220|=>4$|292817\.72|88\.722838|0\.9312|-0\.36439)",
            r"^CAST\((CAST\()?'0\.1' AS FLOAT\) (\*|AS DOUBLE|AS DECIMAL\(38)",
            r"^MAP\['.* AS DOUBLE\), '[^']*', 1\]\['l'\]=>=>.*-1\.0",
            r"^(?P<array>CAST\(ARRAY\[[^=]*NULL.*\)) (<>|IS .* FROM) (?P=array)=>",
            r"^TRY_CAST\(CAST\('1234567\.891' AS DOUBLE\) AS FLOAT\)",
            r"^CAST\(CAST\('1e300' AS DOUBLE\) AS (TINY|SMALL|BIG)?INT\)",
            r"^CAST\(CAST\('1969-12-31 23:59:59\.999' AS TIMESTAMP_LTZ\(3\)\) AS TIMESTAMP_LTZ\(0\)\)",
            r"^LOWER\('ſß İ'",
            r"'-0\.0' AS DOUBLE\) AS (CHAR\(4\)|VARCHAR\(3\)|STRING)",
            "^(?!.*c_).*(TableException: Column|AS DOUBLE.*Division by zero|Infinite or NaN)",
        ),
    ),
)
