"""A wrapper of librdkafka's producer that loses requests and responses, as a network does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaException


def silent() -> KafkaException:
    """Return the error of a client whose request timed out."""
    return KafkaException(
        confluent_kafka.KafkaError(confluent_kafka.KafkaError._TIMED_OUT, "no answer", False, True, False)
    )


class Flaky:
    """Delegates all calls, but loses those of `method` as long as `times[0]` is above zero.

    `losing` is "request" for a call that never reaches the producer, "answer" for one whose result is lost. `meanwhile`
    is called before the failure is raised.
    """

    def __init__(
        self,
        producer: Any,
        method: str,
        losing: str,
        *,
        times: list[int],
        meanwhile: Callable[[], object] = lambda: None,
    ) -> None:
        self._producer, self._method = producer, method
        self.losing, self.times, self.meanwhile = losing, times, meanwhile

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._producer, name)
        return self._lossy(real) if name == self._method else real

    def __len__(self) -> int:
        return len(self._producer)

    def _lossy(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **more: Any) -> Any:
            if not self.times[0]:
                return real(*given, **more)
            self.times[0] -= 1
            if self.losing == "answer":
                real(*given, **more)
            self.meanwhile()
            raise silent()

        return call
