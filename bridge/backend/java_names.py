"""Remembers which Java names are packages, classes and static methods.

PySpark reaches `functions.col` by two requests to the JVM, and `org.apache.hadoop.fs.Path` by five: one for each name.
For a name that is no class Java looks into every jar of the class path. A batch makes thousands of such calls, so every
session of the bridge asks for a name once.
"""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import JavaClass, JavaMember, JavaPackage, JVMView
from pyspark.sql import SparkSession


def remember_lookups(spark: SparkSession) -> None:
    """Let all sessions of this Spark look each Java name up once. Does nothing where Python does not reach the JVM.

    A name that is no class yet is remembered as a package only if it is written like one, in lower case: a class may
    come with a jar that is added later. Fields of classes are read anew each time.
    """
    try:
        jvm: Any = spark._jvm
    except AttributeError:
        return
    if type(jvm) is JVMView:  # on Databricks it may be a class of its own
        jvm.__class__ = _View


def _remembered(owner: Any, name: str, found: Any) -> Any:
    """Return `found`, the value of the attribute `name`, and keep it if it is the same each time."""
    kind = type(found)
    if kind is JavaPackage:
        if not name.rpartition(".")[2].islower():
            return found
        found.__class__ = _Package
    elif kind is JavaClass:
        found.__class__ = _Class
    elif kind is not JavaMember:
        return found
    owner.__dict__[name] = found
    return found


class _View(JVMView):  # type: ignore[misc]  # py4j has no types
    def __getattr__(self, name: str) -> Any:
        return _remembered(self, name, super().__getattr__(name))


class _Package(JavaPackage):  # type: ignore[misc]
    def __getattr__(self, name: str) -> Any:
        return _remembered(self, name, super().__getattr__(name))


class _Class(JavaClass):  # type: ignore[misc]
    def __getattr__(self, name: str) -> Any:
        return _remembered(self, name, super().__getattr__(name))
