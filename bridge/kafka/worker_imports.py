"""Keeps Python workers of Spark from reading the directory of Spark's own zip files before each task.

A worker calls `importlib.invalidate_caches` before each task, for files that `SparkContext.addPyFile` may have added.
Since Python 3.10 that reads the directory of each zip file on the path again, in Python, and once more for each package
in it: of Spark's own for some 80 ms, as long as a small task takes itself. Finders that are left out of the cache of
the path are made anew when something is imported, from the directories that Python has read already.
"""

from __future__ import annotations

import os
import re
import sys
from zipimport import zipimporter

__all__ = ["forget_finders_of_spark"]

_OF_SPARK = re.compile(r"pyspark\.zip|py4j-[\w.]+-src\.zip|spark-core_[\w.-]+\.jar")
"""Files that stay as they are while Spark runs. Others, such as `--py-files`, are looked at as ever."""


def forget_finders_of_spark() -> None:
    """Leave the finders of Spark's zip files out of the cache of the path, until the next import. For the end of a
    task; what is imported stays."""
    for place, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter) and _OF_SPARK.fullmatch(os.path.basename(finder.archive)):
            del sys.path_importer_cache[place]
