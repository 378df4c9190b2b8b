"""Positions in many Avro documents at once, which move over them value by value: the binary encoding, with numpy."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bridge.ways import NotThisWay

Integers: TypeAlias = npt.NDArray[np.int64]
_Bytes: TypeAlias = npt.NDArray[np.uint8]

_LONGEST = {32: 5, 64: 10}
"""Bytes of a number, by its bits. Each byte has seven of them, and its highest bit tells whether another follows."""
_MORE = 0x80
_WORD = 8
_MORES, _SEVENS = np.uint64(0x8080808080808080), np.uint64(0x7F7F7F7F7F7F7F7F)
_JOINS = tuple(
    (np.uint64(low), np.uint64(high), np.uint64(shift))
    for low, high, shift in (
        (0x007F007F007F007F, 0x7F007F007F007F00, 1),
        (0x00003FFF00003FFF, 0x3FFF00003FFF0000, 2),
        (0x000000000FFFFFFF, 0x0FFFFFFF00000000, 4),
    )
)
"""Steps that join groups of 7, 14 and 28 bits, each in two groups as wide as a power of two."""
_ONE = np.uint64(1)
# Around the documents, so that words are read across their bounds before these are checked.
_PADDING = 16
# The limit of formats.avro.decode.bound_memory.
_MOST_BYTES = 2**26
_MOST_IN_ALL = 2**31 - 2 * _PADDING


class Cursor:
    """One position in each document. Every method raises NotThisWay where a position would leave its document."""

    def __init__(self, data: _Bytes, at: Integers, ends: Integers) -> None:
        self.data, self.at, self._ends = data, at, ends

    @classmethod
    def of(cls, payloads: pa.BinaryArray) -> Cursor:
        """Return a cursor at the begin of each payload."""
        if isinstance(payloads, pa.ChunkedArray) or payloads.nbytes > _MOST_IN_ALL:
            raise NotThisWay("the documents take more than 2 GiB")
        _, offsets, values = payloads.buffers()
        bounds = np.frombuffer(offsets, np.int32)[payloads.offset :][: len(payloads) + 1].astype(np.int64)
        first, last = int(bounds[0]), int(bounds[-1])
        data = np.zeros(last - first + 2 * _PADDING, np.uint8)
        if last > first:
            data[_PADDING:-_PADDING] = np.frombuffer(values, np.uint8)[first:last]
        bounds += _PADDING - first
        return cls(data, bounds[:-1], bounds[1:])

    def __len__(self) -> int:
        return len(self.at)

    @property
    def is_at_ends(self) -> bool:
        """Return whether all documents were read to their last byte."""
        return bool(np.array_equal(self.at, self._ends))

    def of_rows(self, rows: Integers) -> Cursor:
        """Return a cursor of some of the documents, in ascending order; see `moved`."""
        return Cursor(self.data, self.at[rows], self._ends[rows])

    def moved(self, rows: Integers, to: Cursor) -> None:
        """Move the documents of `rows` where a cursor of these rows is."""
        at = self.at.copy()
        at[rows] = to.at
        self.at = at

    def skip(self, sizes: int | Integers) -> Integers:
        """Move by so many bytes, and return where they begin."""
        begin = self.at
        end = begin + sizes
        if (end > self._ends).any():
            raise NotThisWay("a document is truncated, or not of its schema")
        self.at = end
        return begin

    def integers(self, bits: int) -> Integers:
        """Return the next number of each document: an int of 32 bits or a long of 64.

        Raises NotThisWay for a number of more bits, which Java cuts."""
        begin = self.at
        value = self.data[begin].astype(np.uint64)
        sizes: int | Integers = 1
        rows = np.flatnonzero(value >= _MORE)
        if rows.size:
            value[rows], more = self._long_numbers(begin[rows])
            if int(more.max()) > _LONGEST[bits] or (bits == 32 and int(value.max()) >> bits):
                raise NotThisWay(f"a number has more than {bits} bits")
            sizes = np.ones(len(begin), np.int64)
            sizes[rows] = more
        self.skip(sizes)
        return ((value >> _ONE) ^ (~(value & _ONE) + _ONE)).view(np.int64)

    def _long_numbers(self, begin: Integers) -> tuple[npt.NDArray[np.uint64], Integers]:
        """Return numbers and how many bytes each has; 11 where it has more than 64 bits."""
        words = self.words("<u8", begin)
        ends = ~words & _MORES
        ends &= ~ends + _ONE
        words &= ends - _ONE
        words &= _SEVENS
        for low, high, shift in _JOINS:
            words = (words & low) | ((words & high) >> shift)
        # The exponent of a power of two tells its bit, the eighth of the last byte.
        sizes = ((ends.astype(np.float64).view(np.int64) >> 52) - 1022) >> 3
        rows = np.flatnonzero(ends == 0)
        if rows.size:
            ninth, tenth = self.data[begin[rows] + _WORD], self.data[begin[rows] + _WORD + 1]
            words[rows] |= (ninth & np.uint8(0x7F)).astype(np.uint64) << np.uint64(56)
            has_tenth = ninth >= _MORE
            words[rows] |= np.where(has_tenth, tenth, 0).astype(np.uint64) << np.uint64(63)
            sizes[rows] = np.where(has_tenth, np.where(tenth > 1, 11, 10), 9)
        return words, sizes

    def lengths(self) -> Integers:
        """Return the next number of each document, which is a count of bytes."""
        found = self.integers(32)
        if len(found) and (int(found.min()) < 0 or int(found.max()) > _MOST_BYTES):
            raise NotThisWay("a length is negative, or more than 64 MiB")
        return found

    def fixed(self, type: str) -> npt.NDArray[Any]:
        """Return the next bytes of each document as numpy's `type`, such as '<f8'."""
        return self.words(type, self.skip(np.dtype(type).itemsize))

    def words(self, type: str, begin: Integers) -> npt.NDArray[Any]:
        """Return bytes as numpy's `type`. They may begin or end up to 16 bytes outside of their document."""
        count = len(self.data) - np.dtype(type).itemsize + 1
        at_every_byte: npt.NDArray[Any] = np.ndarray((count,), type, self.data, strides=(1,))
        return at_every_byte[begin]

    def parts(self, begin: Integers, lengths: Integers) -> pa.BinaryArray:
        """Return bytes of each document."""
        count = len(begin)
        # With what is between them they are slices in order, of which Arrow copies every other.
        bounds = np.empty(2 * count, np.int32)
        bounds[::2], bounds[1::2] = begin, begin + lengths
        buffers = [None, pa.py_buffer(bounds), pa.py_buffer(self.data)]
        slices = pa.BinaryArray.from_buffers(pa.binary(), 2 * count - 1, buffers)
        return slices.take(pa.array(np.arange(0, 2 * count, 2, dtype=np.int32)))
