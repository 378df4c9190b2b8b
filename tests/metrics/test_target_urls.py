"""URLs that cannot work are refused without being shown; what is shown of others has no login."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bridge.metrics.alerts import check_alert
from bridge.metrics.lineage import check_lineage
from bridge.metrics.monitoring import Monitoring
from bridge.metrics.otlp import check_url
from bridge.metrics.prometheus import parsed
from bridge.metrics.target_urls import host_of, split_login, without_login

CHECKS = [check_alert, check_lineage, check_url, parsed]


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize(
    "url",
    [
        "http://",
        "https://:9091/hidden",
        "https://host/hidden token",
        "https://host/hidden\ttoken",
        "https://host/hidden\u00e9",
        "https://user:hid@den@host:port/",
        "https://host:99999/hidden",
        "https://user:hidden/x@host",
        "https://foo..hidden/x",
        "https://[::1/hidden",
        "https://" + "hidden" * 20,
    ],
)
def test_urls_that_cannot_work_are_refused_without_being_shown(
    check: Callable[[str], object], url: str
) -> None:
    with pytest.raises(ValueError, match=r"^not legal") as refused:
        check(url)
    assert "hid" not in str(refused.value) and refused.value.__context__ is None


@pytest.mark.parametrize("check", CHECKS)
def test_urls_that_work(check: Callable[[str], object]) -> None:
    for url in ("http://h", "https://u:p%40x@h:1/base", "http://[::1]:9091", "http://10.0.0.1:80/a-b_c"):
        assert check(url) == url


def test_a_login_is_taken_out_of_a_url() -> None:
    assert split_login("https://me:s%403%2Ft:x@h:1/a?b=c") == ("https://h:1/a?b=c", ("me", "s@3/t:x"))
    assert split_login("https://me@[::1]:1") == ("https://[::1]:1", ("me", ""))
    assert split_login("http://h/a@b") == ("http://h/a@b", None)


def test_what_is_shown_has_no_login() -> None:
    assert without_login("https://me:s@3cret@h:1/x") == "https://h:1/x"
    assert without_login("https://me:s/3cret@h:1/x") == "https://h:1/x"
    assert without_login("a@b.prom") == "a@b.prom"
    assert host_of("https://me:secret@h:x/token") == "h"
    assert host_of("https://[::1/token") == ""


def test_a_login_is_not_in_the_text_of_a_definition() -> None:
    url = "http://user:hidden@host"
    assert "hidden" not in repr(Monitoring.of(url, None, url, url, url))
