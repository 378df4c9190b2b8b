"""How a way of doing a job says that it does not do it, so that a plainer way, with the same result, does.

There are several ways of reading, merging, encoding and sending; ARCHITECTURE.md lists them. A faster one is tried
first. Where it does not apply, or might give another result, it raises NotThisWay before it has changed anything. The
reason is shown: in the line of the batch, in its report and by `--explain`.
"""

from __future__ import annotations


class NotThisWay(Exception):
    """Why a way does not do the job: the end of a sentence, as in "read by spark (the key format is raw)"."""


def told(way: str, reason: object = "") -> str:
    """The name of the way that did a job and, in brackets, why a faster one did not."""
    return f"{way} ({reason})" if str(reason) else way
