"""References of Flink's platforms are those of the bridge."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge.cdc_jobs.references import References
from bridge.errors import DefinitionError
from bridge.secret import Secret


def references(environ: dict[str, str], folder: Path = Path()) -> References:
    def secrets(scope: str, key: str) -> str:
        if (scope, key) == ("secret_values", "kafka-sk"):
            return "from-databricks"
        raise LookupError("it does not exist")

    return References(str(folder), environ, secrets)


def test_a_variable_is_an_environment_variable() -> None:
    found = references({"UPSERT_KAFKA_TOPIC": "t", "REGION_ID": "cn"})
    assert found.translated("${upsert.kafka.topic}-${region-id}", "f:1") == (
        "${env:UPSERT_KAFKA_TOPIC}-${env:REGION_ID}"
    )
    assert found.shown("${upsert.kafka.topic}-${region-id}", "f:1") == "t-cn"


def test_the_bridge_s_own_references_stay(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("p\n")
    found = references({"A": "1"}, tmp_path)
    text = "${env:A} ${env:B:2} ${file:password} $${literal}"
    assert found.translated(text, "f:1") == text
    value = found.value(text, "f:1")
    assert isinstance(value, Secret) and value.reveal() == "1 2 p ${literal}"


def test_a_secret_value_is_never_shown() -> None:
    found = references({"KAFKA_AK": "key"})
    value = found.value("user=${secret_values.kafka-ak}", "f:1")
    assert str(value) == "******"
    assert isinstance(value, Secret) and value.reveal() == "user=key"
    databricks = found.value("${secret_values.kafka-sk}", "f:1")
    assert isinstance(databricks, Secret) and databricks.reveal() == "from-databricks"
    with pytest.raises(
        DefinitionError, match=r"^f:1: secrets and \$\{file:\.\.\.\} are allowed in the options of"
    ):
        found.shown("${secret_values.kafka-ak}", "f:1")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "${upsert.kafka.topic}",
            "f:1: ${upsert.kafka.topic} is the environment variable UPSERT_KAFKA_TOPIC, which is not set; set it, give "
            "--env UPSERT_KAFKA_TOPIC=..., or write one of ${env:NAME}, ${env:NAME:default}, ${file:path}, "
            "${secret:scope/key}",
        ),
        (
            "${secret_values.other-key}",
            "${secret_values.other-key} is the environment variable OTHER_KEY, which is not set, or a secret of "
            "Databricks: it does not exist. Or write one of ${env:NAME}",
        ),
        ("${nothing:x}", "f:1: ${nothing:x} is not a legal reference. Legal references are ${env:NAME}"),
        ("${env:X}", "f:1: the environment variable X is not set; set it"),
    ],
)
def test_what_has_no_value(text: str, message: str) -> None:
    with pytest.raises(DefinitionError) as error:
        references({}).value(text, "f:1")
    assert message in str(error.value)
