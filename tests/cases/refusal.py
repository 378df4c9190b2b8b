"""Compares error messages by their subject, independent of wording.

Case files have upstream's messages. Those of the bridge may differ, but the condition may not (cases/README.md). It
counts as the same when a message contains upstream's text, or every name in it: quoted words, option keys, and
words in capitals.
"""

from __future__ import annotations

import re

from bridge.errors import BridgeError
from tests.cases.outcome import Mismatch

_QUOTED = re.compile(r"'([^'\s]{1,60})'|\"([^\"\s]{1,60})\"")
_KEY = re.compile(r"(?<![\w.-])[a-z]+(?:[.-][a-z]+)*[.-][a-z]+(?:[.-][a-z]+)*(?![\w-])")
_CAPITALS = re.compile(r"(?<![\w`'])[A-Z][A-Z_]{2,}(?![\w`'])")
_SHOUTED = frozenset({"JSON", "SQL", "AND", "NOT", "FULL", "UPDATE"})


def names(message: str) -> set[str]:
    """Returns the names in a message: quoted words, keys with dots or hyphens, words in capitals."""
    quoted = {a or b for a, b in _QUOTED.findall(message)}
    return quoted | set(_KEY.findall(message)) | (set(_CAPITALS.findall(message)) - _SHOUTED)


def check_refusal(error: BridgeError, theirs: str, *, also: tuple[str, ...] = ()) -> None:
    """Raises Mismatch unless `error` contains `theirs`, or all of its names (and those of `also`)."""
    ours = str(error)
    if theirs in ours and not also:
        return
    wanted = names(theirs) | set(also)
    missing = sorted(name for name in wanted if name.casefold() not in ours.casefold())
    if missing or not wanted:
        said = ours.splitlines()[0][:200]
        raise Mismatch(
            f"refused for another reason? wanted {theirs[:120]!r}, said {said!r}, without {missing}"
        )
