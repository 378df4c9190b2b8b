"""Flink's avro formats: documents of the derived schema, and in Confluent's framing (`format`)."""
