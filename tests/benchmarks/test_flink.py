"""The peer Flink: what its JVM is given."""

from __future__ import annotations

from benchmarks.flink import log_settings


def test_the_log_has_its_level_and_the_pattern_of_log4j() -> None:
    settings = dict(line.split(" = ", 1) for line in log_settings("WARN").splitlines())
    assert settings["rootLogger.level"] == "WARN"
    assert settings["appender.console.layout.pattern"] == "%d{HH:mm:ss} %-5p %c{1} %m%n"
