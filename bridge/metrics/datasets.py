"""What a run reads and writes, in OpenLineage's words: datasets, their columns, and from which columns these come."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Origin:
    """A column of an input from which values of an output's column come."""

    namespace: str
    name: str
    column: str
    subtype: str = "IDENTITY"
    """OpenLineage's kind of a direct transformation: IDENTITY, TRANSFORMATION or AGGREGATION."""


@dataclass(frozen=True)
class Dataset:
    """A topic, or a Delta table. Namespace and name follow OpenLineage's rules, so that all jobs mean the same one."""

    namespace: str
    name: str
    is_table: bool
    columns: tuple[tuple[str, str | None], ...] = ()
    """Names and types, Flink's of a topic and Spark's of a table; None and empty where they are not known."""
    origins: Mapping[str, tuple[Origin, ...]] = field(default_factory=dict)
    """Of the columns of an output; a column whose origin cannot be said is left out."""
    symlink: tuple[str, str] | None = None
    """Namespace and name in the catalog, of a table that has one."""
    counted: tuple[tuple[str, str], ...] = ()
    """Verb and pipeline of the reports that are about this dataset."""
    shares_counts: bool = False
    """Whether the counts of these reports are those of other topics, too."""

    def origin(self, column: str, subtype: str = "IDENTITY") -> Origin:
        """Returns one of its columns as an origin."""
        return Origin(self.namespace, self.name, column, subtype)


@dataclass(frozen=True)
class Assertion:
    """Whether the rows of an input satisfy a rule. It has no values of rows."""

    rule: str
    success: bool
    column: str | None = None
    is_error: bool = True
    """Whether it fails the run where it does not succeed."""


@dataclass(frozen=True)
class Flow:
    """What a run reads and writes."""

    inputs: tuple[Dataset, ...] = ()
    outputs: tuple[Dataset, ...] = ()
    spark: str = ""
    """The version of Spark."""
    is_streaming: bool = False
    sql: str | None = None
    """The statements of a script that have no options, and so no secrets."""
    gate: bool | None = None
    """Whether a row that fails the gate fails the run; None without a gate."""


def joined(datasets: Iterable[Dataset]) -> tuple[Dataset, ...]:
    """Returns each dataset once, with the origins and the reports of all that have its name."""
    found: dict[tuple[str, str], Dataset] = {}
    for dataset in datasets:
        at = (dataset.namespace, dataset.name)
        before = found.get(at, replace(dataset, origins={}, counted=()))
        origins = {
            column: tuple(dict.fromkeys((*before.origins.get(column, ()), *dataset.origins.get(column, ()))))
            for column in (*before.origins, *dataset.origins)
        }
        counted = tuple(dict.fromkeys((*before.counted, *dataset.counted)))
        found[at] = replace(before, origins=origins, counted=counted)
    return tuple(found.values())
