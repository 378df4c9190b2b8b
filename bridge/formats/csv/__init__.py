"""Flink's csv format."""
