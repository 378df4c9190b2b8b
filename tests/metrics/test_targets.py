"""No receiver holds the end of a run, however slowly it answers."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from bridge.metrics import BatchReport, RunName, ignore, targets
from bridge.metrics.monitoring import Monitoring, monitored
from tests.metrics.odd_servers import slow

RUN = RunName("orders", "ingest", "t")


@pytest.mark.parametrize("of", [lambda url: Monitoring(metrics=url), lambda url: Monitoring(otlp=url)])
def test_a_receiver_that_never_ends_its_answer_does_not_hold_the_end(
    of: Callable[[str], Monitoring], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(targets, "TIMEOUT_SECONDS", 0.5, raising=False)
    with slow() as address:
        begun = time.monotonic()
        with monitored(of(f"http://{address}"), ignore, RUN) as listen:
            listen(BatchReport("orders", "ingest", 4, records_in=7))
        assert 0.4 < time.monotonic() - begun < 3
    told = [record.getMessage() for record in caplog.records if record.name == "bridge.metrics"]
    assert told == [f"metrics are not shown at http://{address}: it takes longer than 0.5 s"]
