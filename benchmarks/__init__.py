"""How fast the bridge is, beside what Spark has of its own. Run as `python -m benchmarks.formats`."""
