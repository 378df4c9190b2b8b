"""Documents to Arrow, for Python workers: only where that gives exactly what `formats` gives on Spark.

A decoder never differs from Spark's path: what it may read otherwise, it refuses (docs/adr/029).
"""
