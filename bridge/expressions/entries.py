"""What each of Flink's functions is in Spark, where it is not the function of the same name.

An entry is a text in which `@0` is the first argument, a text for each number of arguments, or builds the expression
from the call. `make flink-vectors` asks Flink for the values; `tests/expressions` compares them.
"""

from __future__ import annotations

from bridge.expressions import collections, json, numbers, texts, times
from bridge.expressions.call import Entries

__all__ = ["ENTRIES"]

ENTRIES: Entries = {
    **texts.ENTRIES,
    **numbers.ENTRIES,
    **times.ENTRIES,
    **collections.ENTRIES,
    **json.ENTRIES,
}
