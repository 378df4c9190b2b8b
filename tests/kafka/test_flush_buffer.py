from __future__ import annotations

from bridge.kafka.flush_buffer import FlushBuffer
from bridge.kafka.records import Records


class _Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def _records(*pairs: tuple[bytes, bytes | None]) -> Records:
    return Records(["t"] * len(pairs), [k for k, _ in pairs], [v for _, v in pairs])


def test_the_buffer_keeps_the_last_record_of_each_key() -> None:
    """It hands over at max_rows distinct keys, in the order of last changes, and the rest at flush()."""
    out: list[list[tuple[bytes | None, bytes | None]]] = []
    buffer = FlushBuffer(
        lambda r: out.append(list(zip(r.keys, r.values, strict=True))),
        max_rows=2,
        interval_ms=10_000,
        clock=_Clock(),
    )
    buffer.add(_records((b"a", b"1"), (b"a", b"2"), (b"a", None), (b"b", b"1"), (b"a", b"3"), (b"c", b"1")))
    buffer.add(_records((b"c", b"2"), (b"a", b"4")))
    assert out == [[(b"a", None), (b"b", b"1")], [(b"a", b"3"), (b"c", b"1")], [(b"c", b"2"), (b"a", b"4")]]
    buffer.flush()
    assert len(out) == 3
    buffer.add(_records((b"z", b"1")))
    buffer.flush()
    assert out[3:] == [[(b"z", b"1")]]


def test_the_buffer_flushes_when_the_interval_has_passed() -> None:
    """Counted from the last flush, whatever caused it."""
    clock = _Clock()
    out: list[Records] = []
    buffer = FlushBuffer(out.append, max_rows=100, interval_ms=1000, clock=clock)
    buffer.add(_records((b"a", b"1")))
    clock.now = 0.9
    buffer.flush()
    clock.now = 1.8
    buffer.add(_records((b"a", b"2")))
    assert [r.values for r in out] == [[b"1"]]
    clock.now = 1.95
    buffer.add(_records((b"a", b"3")))
    assert [r.values for r in out] == [[b"1"], [b"3"]]


def test_topics_do_not_share_keys_in_the_buffer() -> None:
    out: list[Records] = []
    buffer = FlushBuffer(out.append, max_rows=100, interval_ms=1000, clock=_Clock())
    buffer.add(Records(["t", "u"], [b"a", b"a"], [b"1", b"2"], [5, None], [None, [("h", None)]]))
    buffer.flush()
    assert out == [Records(["t", "u"], [b"a", b"a"], [b"1", b"2"], [5, None], [None, [("h", None)]])]
