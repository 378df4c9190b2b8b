"""Reads data-ingestion jobs of Flink CDC (YAML: `source`, `sink`, `route`, `transform`, `pipeline`) and translates them
into pipelines and a script that the bridge has: `load_job(path)`. Without Spark and Kafka."""

from bridge.cdc_jobs.job import Job, as_json, as_rows
from bridge.cdc_jobs.load import is_job, load_job

__all__ = ["Job", "as_json", "as_rows", "is_job", "load_job"]
