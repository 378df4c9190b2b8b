"""Loads suite files, in Great Expectations' JSON, completely or not at all.

Great Expectations itself drops an expectation that it does not know, with a line in its log. A suite would then pass
without evaluating it.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bridge.errors import DefinitionError
from bridge.quality.gx import quiet
from bridge.user_files import location_of, read_text

if TYPE_CHECKING:
    from great_expectations.core import ExpectationSuite
    from great_expectations.expectations.expectation import Expectation


_FORMAT = 'a suite is {"name": ..., "expectations": [{"type": ..., "kwargs": {...}}, ...]}'


@dataclass(frozen=True)
class Suite:
    """A completely loaded suite: its name, its file and Great Expectations' objects."""

    name: str
    file: str
    expectations: tuple[Expectation, ...]

    def __len__(self) -> int:
        return len(self.expectations)


def load(path: str | Path) -> Suite:
    """Loads the suite file at `path`, or at a URI on an object store.

    Raises DefinitionError with the file and the number of the expectation (from 1) when the file is not a suite, an
    expectation does not exist or does not accept its arguments, or Great Expectations loads fewer expectations than the
    file has.
    """
    file = location_of(path)
    return parse(_text(file), file)


def parse(text: str, file: str) -> Suite:
    """Loads a suite from `text`, which was read from `file`; otherwise like `load`."""
    document = _document(text, file)
    items = document["expectations"]
    with quiet():
        from great_expectations.core import ExpectationSuite

        import bridge.quality.expectations
        import bridge.quality.histories
        import bridge.quality.referential_integrity  # noqa: F401

        for number, item in enumerate(items, 1):
            _check(file, number, item)
        try:
            suite = ExpectationSuite(**document)
        except Exception as e:
            raise DefinitionError(f"{file}: Great Expectations rejects the suite: {_first_line(e)}") from e
        loaded = tuple(suite.expectations)
    if len(loaded) != len(items):
        raise DefinitionError(
            f"{file}: has {len(items)} expectations, but {len(loaded)} were loaded: "
            f"{_dropped_expectation(items, suite)}"
        )
    return Suite(suite.name, file, loaded)


def _text(file: str) -> str:
    try:
        return read_text(file)
    except OSError as e:
        raise DefinitionError(f"{file}: the quality suite cannot be read: {e.strerror}") from e
    except UnicodeDecodeError as e:
        raise DefinitionError(f"{file}: the quality suite is not UTF-8 text") from e


def _document(text: str, file: str) -> dict[str, Any]:
    try:
        document = json.loads(text, object_pairs_hook=_without_duplicate_names)
    except json.JSONDecodeError as e:
        raise DefinitionError(f"{file}:{e.lineno}:{e.colno}: not JSON: {e.msg}") from e
    except ValueError as e:
        raise DefinitionError(f"{file}: {e}") from e
    if not isinstance(document, dict):
        raise DefinitionError(f"{file}: {_FORMAT}")
    if "expectation_suite_name" in document:
        raise DefinitionError(
            f'{file}: this is the format of Great Expectations 0.x; write "name" for '
            '"expectation_suite_name" and "type" for each "expectation_type"'
        )
    if not isinstance(document.get("name"), str) or not isinstance(document.get("expectations"), list):
        raise DefinitionError(f"{file}: {_FORMAT}")
    if not document["expectations"]:
        raise DefinitionError(
            f"{file}: the suite has no expectations, so it could never fail; add an expectation"
        )
    return document


def _without_duplicate_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the name {twice!r} occurs twice in one object, and JSON would keep only the last")
    return members


def _check(file: str, number: int, item: Any) -> None:
    """Builds expectation `number` alone, so that an error message can name it and the reason."""
    from great_expectations.expectations.expectation_configuration import ExpectationConfiguration
    from great_expectations.expectations.registry import list_registered_expectation_implementations

    at = f"{file}: expectation {number}"
    if not isinstance(item, dict) or not isinstance(item.get("type"), str):
        raise DefinitionError(f'{at}: "type" is missing; {_FORMAT}')
    type, kwargs = item["type"], item.get("kwargs")
    known = list_registered_expectation_implementations()
    if type not in known:
        near = difflib.get_close_matches(type, known, n=1, cutoff=0.6)
        hint = (
            f"did you mean {near[0]!r}?"
            if near
            else "see the gallery of Great Expectations for the available ones"
        )
        raise DefinitionError(f"{at}: there is no {type!r}; {hint}")
    at += f" ({type})"
    if not isinstance(kwargs, dict):
        raise DefinitionError(f'{at}: "kwargs" is missing; {_FORMAT}')
    if parameter := _parameter(kwargs):
        raise DefinitionError(
            f"{at}: {parameter!r} is a suite parameter, for which the bridge has no value; replace it by its value"
        )
    try:
        ExpectationConfiguration(**item).to_domain_obj()
    except Exception as e:
        raise DefinitionError(f"{at}: {_reason_of(e)}") from e


def _parameter(value: Any) -> str | None:
    if isinstance(value, dict):
        if "$PARAMETER" in value:
            return str(value["$PARAMETER"])
        return next((p for v in value.values() if (p := _parameter(v))), None)
    if isinstance(value, list):
        return next((p for v in value if (p := _parameter(v))), None)
    return None


def _reason_of(error: Exception) -> str:
    """Returns Great Expectations' reason on one line; errors of pydantic as `argument: reason`."""
    problems = getattr(error, "errors", None)
    if not callable(problems):
        return _first_line(error)
    seen: dict[str, str] = {}
    for problem in problems():
        where = ".".join(str(part) for part in problem["loc"] if part != "__root__")
        seen.setdefault(where, f"{where}: {problem['msg']}" if where else str(problem["msg"]))
    return "; ".join(seen.values())


def _first_line(error: Exception) -> str:
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__


def _dropped_expectation(items: list[Mapping[str, Any]], suite: ExpectationSuite) -> str:
    loaded_types = [e.expectation_type for e in suite.expectations]
    for number, item in enumerate(items, 1):
        if item["type"] not in loaded_types:
            return f"expectation {number} ({item['type']}) was dropped"
        loaded_types.remove(item["type"])
    return "it is unknown which ones were dropped"
