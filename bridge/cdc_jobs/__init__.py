"""Translates data-ingestion jobs of Flink CDC (YAML) to pipelines and a script, without Spark and Kafka.

`load_job(path)` reads `source`, `sink`, `route`, `transform` and `pipeline`.
"""

from bridge.cdc_jobs.job import Job, as_json, as_rows
from bridge.cdc_jobs.load import is_job, load_job

__all__ = ["Job", "as_json", "as_rows", "is_job", "load_job"]
