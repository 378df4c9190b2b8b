"""Declares every WITH option as a value: key, type, default, description and how the bridge supports it."""

from bridge.options.formats import FORMATS, DeclaredFormat
from bridge.options.metadata import METADATA, ROW_KIND, ROW_NUMBER
from bridge.options.model import KAFKA, UPSERT, Option, Side, Support
from bridge.options.table_options import OPTIONS, EffectiveOption, FormatUse, TableOptions, declared

__all__ = [
    "FORMATS",
    "KAFKA",
    "METADATA",
    "OPTIONS",
    "ROW_KIND",
    "ROW_NUMBER",
    "UPSERT",
    "DeclaredFormat",
    "EffectiveOption",
    "FormatUse",
    "Option",
    "Side",
    "Support",
    "TableOptions",
    "declared",
]
