"""Great Expectations, kept quiet and at home.

It sends nothing out, and its log lines (which quote values of the data) are held back: what went wrong
reaches the user through the verdict instead.
"""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["quiet"]


@contextmanager
def quiet() -> Iterator[None]:
    """Import and use Great Expectations in here only; warnings and logging are as before afterwards."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    log = logging.getLogger("great_expectations")
    level = log.level
    # Its warnings are about its own insides (modules of the standard library, marshmallow, pydantic).
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before = warnings.showwarning
        log.setLevel(logging.CRITICAL + 1)
        try:
            yield
        finally:
            log.setLevel(level)
            if warnings.showwarning is not before:
                # Importing it sends every warning of the process to the log, whoever's it is.
                logging.captureWarnings(False)
