"""Error messages for a pipeline file: with file, line, YAML path, legal values and the most similar key."""

from __future__ import annotations

from difflib import get_close_matches
from types import UnionType
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from bridge.config.model import PipelineFile
from bridge.config.yaml_tree import Document, Place
from bridge.errors import BridgeError, DefinitionError, UnsupportedError

_EXPECTED = {
    "string_type": "text is expected; quote the value",
    "int_type": "a whole number is expected",
    "model_type": "a mapping (key: value) is expected",
    "dict_type": "a mapping (key: value) is expected",
    "list_type": "a list (- key: value) is expected",
    "greater_than": "a number of at least 1 is expected",
    "string_too_short": "it is empty; set a value",
}
_PATTERNS: dict[Place, str] = {
    ("name",): "legal are letters, digits, '.', '_' and '-', and it must start with a letter or digit",
    ("delta", "table"): "legal forms are table, schema.table and catalog.schema.table",
}


def explain_invalid(
    document: Document, error: ValidationError, model: type[BaseModel] = PipelineFile
) -> DefinitionError:
    """Returns one error with a line for each error of pydantic, which validated the document as `model`. It quotes the
    file, never substituted values."""
    lines = [_line(document, tuple(d["loc"]), d, model) for d in error.errors(include_url=False)]
    return DefinitionError("\n".join(dict.fromkeys(lines)))


def located(document: Document, place: Place, error: BridgeError) -> DefinitionError:
    """Returns an error of the same class as `error` whose message starts with the position in the pipeline file."""
    message = f"{document.where(place)}: {error}"
    if isinstance(error, UnsupportedError):
        return UnsupportedError(message, error.what)
    located_error = type(error)(message)
    assert isinstance(located_error, DefinitionError)
    return located_error


def _line(document: Document, loc: Place, detail: ErrorDetails, model: type[BaseModel]) -> str:
    kind, context = detail["type"], detail.get("ctx", {})
    where = document.where(loc)
    if kind == "extra_forbidden":
        return f"{where} is not a legal key; {_nearest(loc, model)}"
    if kind == "missing":
        return f"{where} is missing; it is required"
    raw = document.raw(loc)
    # A URL may hold a password, also where the file has it as it is.
    shown = "" if raw is None or "://" in str(raw) else f"'{raw}': "
    if kind == "literal_error":
        return f"{where}: {shown}not legal; legal values are {context['expected']}".replace("'" * 2, "'")
    if kind == "value_error":
        return f"{where}: {shown}{context['error']}"
    if kind == "string_pattern_mismatch":
        return f"{where}: {shown}not legal; {_PATTERNS[loc]}"
    return f"{where}: {shown}{_EXPECTED.get(kind, detail['msg'])}"


def _nearest(loc: Place, model: type[BaseModel]) -> str:
    legal = _keys(loc[:-1], model)
    near = get_close_matches(str(loc[-1]).replace("_", "-").lower(), legal, 1, 0.6)
    return f"did you mean '{near[0]}'?" if near else f"legal keys are {', '.join(legal)}"


def _keys(place: Place, model: type[BaseModel]) -> list[str]:
    """Returns the keys that the model defines at `place`."""
    for part in place:
        if isinstance(part, str):  # an item of a list has the model of the list
            model = _model({f.alias: f.annotation for f in model.model_fields.values()}[part])
    return [str(f.alias) for f in model.model_fields.values()]


def _model(annotation: Any) -> type[BaseModel]:
    if get_origin(annotation) is list:
        annotation = get_args(annotation)[0]
    if isinstance(annotation, UnionType):
        annotation = next(a for a in get_args(annotation) if a is not type(None))
    assert isinstance(annotation, type)
    assert issubclass(annotation, BaseModel)
    return annotation
