"""Silences Great Expectations: no analytics over the network, no warnings, and no log lines.

Its log lines quote values of the data. Users see its errors as the `reason` of an outcome instead.
"""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet() -> Iterator[None]:
    """Silences Great Expectations in the block, for imports as well; restores warnings and logging afterwards."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    log = logging.getLogger("great_expectations")
    level = log.level
    # Its warnings are about its own dependencies (modules of the standard library, marshmallow, pydantic).
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before = warnings.showwarning
        log.setLevel(logging.CRITICAL + 1)
        try:
            yield
        finally:
            log.setLevel(level)
            if warnings.showwarning is not before:
                # Importing it redirects all warnings of the process to its log.
                logging.captureWarnings(False)
