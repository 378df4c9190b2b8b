"""Flink's avro formats: documents of the derived schema (`format`), and in Confluent's framing (`confluent`)."""
