"""The exceptions of the bridge: their tree, their exit codes and pickling."""

from __future__ import annotations

import pickle
import re

import pytest

from bridge import errors


def classes() -> list[type[errors.BridgeError]]:
    return [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.BridgeError)
    ]


def test_the_tree_lists_every_class_with_its_exit_code() -> None:
    drawn = dict(re.findall(r"(\w+Error) .*?(?:exit (\d))?$", errors.__doc__ or "", flags=re.M))
    assert set(drawn) == {kind.__name__ for kind in classes()}
    for name, code in drawn.items():
        if code:
            assert getattr(errors, name).exit_code == int(code)


@pytest.mark.parametrize("kind", classes(), ids=lambda c: c.__name__)
def test_every_error_is_a_bridge_error_documented_and_picklable(kind: type[errors.BridgeError]) -> None:
    error = kind("words", "what") if kind is errors.UnsupportedError else kind("words")
    assert isinstance(error, errors.BridgeError) and kind.__doc__
    unpickled = pickle.loads(pickle.dumps(error))
    assert type(unpickled) is kind and str(unpickled) == str(error)


def test_ddl_errors_start_with_the_position() -> None:
    error = errors.DdlError("unknown type FOO", "orders.sql", 3, 14)
    assert str(error) == "orders.sql:3:14: unknown type FOO"
    assert (error.file, error.line, error.column) == ("orders.sql", 3, 14)


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (errors.BridgeError, 1),
        (errors.GapError, 1),
        (errors.OptionError, 2),
        (errors.UnsupportedError, 2),
        (errors.QualityError, 3),
        (errors.DifferenceError, 4),
    ],
)
def test_exit_codes(kind: type[errors.BridgeError], code: int) -> None:
    assert kind.exit_code == code
