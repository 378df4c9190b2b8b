"""Every WITH option as a value: key, type, default, description and what the bridge does with it."""

from bridge.options.catalog import OPTIONS, declared
from bridge.options.formats import FORMATS, DeclaredFormat
from bridge.options.given import Effective, FormatUse, Given
from bridge.options.metadata import METADATA, ROW_KIND
from bridge.options.model import KAFKA, UPSERT, Fate, Option, Side

__all__ = [
    "FORMATS",
    "KAFKA",
    "METADATA",
    "OPTIONS",
    "ROW_KIND",
    "UPSERT",
    "DeclaredFormat",
    "Effective",
    "Fate",
    "FormatUse",
    "Given",
    "Option",
    "Side",
    "declared",
]
