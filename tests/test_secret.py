"""Secrets are masked."""

from __future__ import annotations

import json
import pickle

from bridge.secret import Secret


def test_a_secret_never_shows_itself() -> None:
    secret = Secret("hunter2")
    shown = [str(secret), repr(secret), f"{secret}", "%s" % secret, json.dumps(secret), f"{ {'a': secret} }"]  # noqa: UP031
    assert not any("hunter2" in text for text in shown)
    assert secret.reveal() == "hunter2"


def test_a_secret_can_be_pickled_and_compares_by_its_value() -> None:
    again = pickle.loads(pickle.dumps(Secret("hunter2")))
    assert again == Secret("hunter2") and again.reveal() == "hunter2"
    assert again != Secret("other") and again != "hunter2" and again != "******"
    assert len({Secret("a"), Secret("a"), Secret("b")}) == 2
