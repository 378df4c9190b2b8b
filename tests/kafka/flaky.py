"""A producer between us and librdkafka's that loses answers, as a network does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaException

__all__ = ["Flaky", "silent"]


def silent() -> KafkaException:
    """What a client says that waited for nothing."""
    return KafkaException(
        confluent_kafka.KafkaError(confluent_kafka.KafkaError._TIMED_OUT, "no answer", False, True, False)
    )


class Flaky:
    """Hands all calls on, but those of `method` fail as `losing` says, as long as `times` is above zero.

    "request": the call never gets there; "answer": it is done, and nobody hears of it. `meanwhile` is called before
    the failure is raised.
    """

    def __init__(
        self,
        producer: Any,
        method: str,
        losing: str,
        *,
        times: list[int],
        meanwhile: Callable[[], None] = lambda: None,
    ) -> None:
        self._producer, self._method, self._losing = producer, method, losing
        self._times, self._meanwhile = times, meanwhile

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._producer, name)
        return self._lossy(real) if name == self._method else real

    def __len__(self) -> int:
        return len(self._producer)

    def _lossy(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **more: Any) -> Any:
            if not self._times[0]:
                return real(*given, **more)
            self._times[0] -= 1
            if self._losing == "answer":
                real(*given, **more)
            self._meanwhile()
            raise silent()

        return call
