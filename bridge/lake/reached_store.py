"""Finds the store of a place without Spark: same place, with the login that delta-rs looks up for it."""

from __future__ import annotations

import re

from bridge.lake.local_store import LocalStore
from bridge.lake.remote_store import RemoteStore
from bridge.lake.store import Store
from bridge.store_options import REMOTE, file_options
from bridge.ways import NotThisWay

_OF_DELTA_RS = ("max_retries", "retry_timeout")
"""Options of its client, which the client of `RemoteStore` takes otherwise."""


def reached_store(place: str) -> Store:
    """The store of a folder that is given by its path or URI. Nothing is read.

    What the settings of `given_settings` leave open is looked up in the environment, a profile, the instance or the
    container. Raises NotThisWay for a place that only Spark reaches.
    """
    scheme, colon, path = place.partition(":")
    if not colon or not re.fullmatch("[A-Za-z][A-Za-z0-9+.-]*", scheme):
        return LocalStore(place)
    if scheme == "file":
        return LocalStore(f"/{path.lstrip('/')}")
    if scheme not in REMOTE:
        raise NotThisWay(f"only Spark reads {scheme}:")
    options = {name: value for name, value in file_options(place).items() if name not in _OF_DELTA_RS}
    return RemoteStore(place.rstrip("/"), options)
