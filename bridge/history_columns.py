"""The columns that a table has beside those of the DDL where it keeps histories (`delta.history`)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class History:
    """`delta.history: scd2`: the table has a row for each interval in which its key had these values. The fields are
    names of columns (`delta.history-columns`): the sequence from which the row is valid, that before which it ends,
    null for the row that is valid now, and whether it is that one. `history: bitemporal` has two more: when the table
    learnt the row, and when it learnt that the row is another, null for what it knows now."""

    valid_from: str = "__valid_from"
    valid_to: str = "__valid_to"
    current: str = "__current"
    system_from: str | None = None
    system_to: str | None = None

    @classmethod
    def bitemporal(cls) -> History:
        """The one with the default names of `history: bitemporal`."""
        return cls(system_from="__system_from", system_to="__system_to")

    @property
    def valid_columns(self) -> tuple[str, str, str]:
        return self.valid_from, self.valid_to, self.current

    @property
    def system_columns(self) -> tuple[str, ...]:
        """None but of `history: bitemporal`."""
        return tuple(name for name in (self.system_from, self.system_to) if name is not None)

    @property
    def columns(self) -> tuple[str, ...]:
        return *self.valid_columns, *self.system_columns

    @property
    def of_row(self) -> tuple[str, ...]:
        """The columns that identify a row, beside its key."""
        return self.valid_from, *self.system_columns[:1]

    @property
    def ends(self) -> tuple[str, ...]:
        """The columns of which one has a value in a row that is not valid now."""
        return self.valid_to, *self.system_columns[1:]


@dataclass(frozen=True)
class AppendHistory:
    """`delta.history: append`: the table has a row for each change, and none is ever changed. The fields are names of
    columns (`delta.history-columns`): the row kind, and the place of the change, `row` in its document from 0."""

    kind: str = "__change_kind"
    topic: str = "__change_topic"
    partition: str = "__change_partition"
    offset: str = "__change_offset"
    row: str = "__change_row"

    @property
    def columns(self) -> tuple[str, ...]:
        return self.kind, *self.place

    @property
    def place(self) -> tuple[str, ...]:
        """The columns that identify a row."""
        return self.topic, self.partition, self.offset, self.row
