"""The URLs at which runs show what they do: which are legal, their logins, and what may be shown of them."""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

_CANNOT_WORK = (
    "not legal: a URL needs a host and, if it has a port, a number; write other characters than letters, digits and "
    "signs of ASCII as %20 and the like, also @, / and : of a password"
)


def check_http_url(text: str, legal: str, *, has_query: bool = False) -> str:
    """Returns a URL that can be asked. Raises ValueError for others, with what is `legal`; it does not repeat them, as
    they may hold a password."""
    if not text.startswith(("http://", "https://")):
        raise ValueError(f"not legal; legal values are {legal}")
    try:
        parts = urlsplit(text)
        can_work = parts.port != 0 and is_host(parts.hostname or "") and re.fullmatch(r"[!-~]+", text)
    except ValueError:
        can_work = None
    if not can_work:
        raise ValueError(_CANNOT_WORK)
    if not has_query and ("?" in text or "#" in text):
        raise ValueError("not legal: this URL gets paths added, so that it cannot have a query")
    return text


def is_host(host: str) -> bool:
    """Returns whether a host can have this name."""
    try:
        return 0 < len(host.encode("idna")) <= 253
    except UnicodeError:
        return False


def split_login(url: str) -> tuple[str, tuple[str, str] | None]:
    """Returns a URL without its login, and user and password."""
    login = urlsplit(url).netloc.rpartition("@")[0]
    if not login:
        return url, None
    user, _, password = login.partition(":")
    return url.replace(f"{login}@", "", 1), (unquote(user), unquote(password))


def without_login(target: str) -> str:
    """Returns a target as it may be shown: a URL without user and password, also where these have a / or an @."""
    scheme, found, rest = target.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}" if found else target


def host_of(url: str) -> str:
    """Returns the host of a URL, which may be shown; empty where it has none."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
