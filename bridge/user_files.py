"""Reads the small files that users write (pipeline files, DDL, scripts, suites), on a local disk or an object store.

Pipeline files are read before Spark exists, so Hadoop's client is not there yet, and which of Hadoop's clients Spark
gets follows from what the file says. So delta-rs reads them, which has a client of its own (docs/adr/040).
"""

from __future__ import annotations

import errno
import os
import posixpath
import re
from pathlib import Path
from urllib.parse import urlsplit

from bridge.errors import DefinitionError
from bridge.store_options import file_options

_SCHEMES = ("s3a", "s3", "abfs", "abfss", "gs")
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(//?)(.*)", re.DOTALL)
_CREDENTIALS = (
    "they come from the environment (for S3 AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile, or the role of the "
    "machine), or from spark.hadoop.fs.s3a.* of --conf or spark-submit"
)


def location_of(path: str | Path) -> str:
    """Return a local path as it is given, and the URI of a file on an object store with its two slashes.

    `file:` URIs become local paths; a Path of a URI, which has lost a slash, gets it back. Raises DefinitionError for
    any other URI, with the way out, and for credentials in a URI.
    """
    text = str(path)
    match = _URI.fullmatch(text)
    if match is None:
        return text
    scheme, rest = match[1].lower(), match[3]
    if scheme == "file":
        local = rest.partition("/")[2] if match[2] == "//" else rest
        return f"/{local.lstrip('/')}"
    if scheme.startswith("s3") and "@" in rest.partition("/")[0]:
        raise DefinitionError(
            f"{scheme}://{rest.partition('@')[2]}: the URI has credentials in it, which the bridge does not read, as "
            f"logs show URIs; {_CREDENTIALS}"
        )
    if scheme not in _SCHEMES:
        known = ", ".join(f"{known}://" for known in _SCHEMES)
        raise DefinitionError(
            f"{text}: the bridge reads no files of {scheme}:; legal are paths of this machine, and {known}. Give "
            "a mounted path (/dbfs/... for dbfs:/...), or let spark-submit bring the file (--files URI) and give "
            "its name alone"
        )
    return f"{scheme}://{rest}"


def folder_of(location: str) -> str:
    """Return the folder of a file: an absolute path, or a URI without the last slash.

    Symbolic links are not resolved: a mounted configuration is one, and relative paths are relative to the link.
    """
    if _is_stored(location):
        return location.rpartition("/")[0]
    return str(Path(os.path.abspath(location)).parent)


def resolved(folder: str, path: str) -> str:
    """Return `path`, which is no URI, as seen from `folder`: with an absolute one, or `..`, as on a local disk."""
    if not _is_stored(folder) or path.startswith("/"):
        return os.path.normpath(os.path.join(folder, path))
    parts = urlsplit(folder)
    inside = posixpath.normpath(posixpath.join(f"/{parts.path.lstrip('/')}", path))
    return f"{parts.scheme}://{parts.netloc}{inside}"


def read_text(location: str) -> str:
    """Return a file as text. Raises UnicodeDecodeError for what is not UTF-8, and OSError, whose `strerror` says why
    and, for a file on an object store, what to do; it never has a secret, and nothing of what the store answered.
    """
    if not _is_stored(location):
        return Path(location).read_text(encoding="utf-8")
    return _stored(location).decode("utf-8").replace("\r\n", "\n")


def _is_stored(location: str) -> bool:
    return location.partition("://")[0] in _SCHEMES and "://" in location


def _stored(uri: str) -> bytes:
    from deltalake.exceptions import DeltaError
    from deltalake.fs import DeltaStorageHandler

    folder, _, name = uri.rpartition("/")
    if not name or not urlsplit(uri).path.strip("/"):
        raise IsADirectoryError(errno.EISDIR, "the URI names no file in the bucket")
    try:
        with DeltaStorageHandler(folder, file_options(uri)).open_input_file(name) as opened:
            return bytes(opened.read())
    except FileNotFoundError:
        raise FileNotFoundError(
            errno.ENOENT, "the store has no such file; check bucket and path", uri
        ) from None
    except (OSError, DeltaError, ValueError) as failed:
        raise OSError(errno.EIO, _reason(str(failed)), uri) from None


def _reason(answer: str) -> str:
    """What the text of an error of delta-rs means. The text itself may quote the store's answer, which names keys."""
    if "169.254." in answer or re.search(r"credential|identity|token", answer, re.IGNORECASE):
        return f"no credentials were found, or they are not valid; {_CREDENTIALS}"
    status = re.search(r"\b([45]\d\d) [A-Z]", answer)
    if status and status[1] in ("401", "403"):
        return (
            f"the store refused the request ({status[1]}): the credentials are not valid or may not read this file, or "
            f"there is none and they may not list; {_CREDENTIALS}"
        )
    if status:
        return f"the store answered with status {status[1]}"
    if re.search(r"connect|dns|timed? ?out|sending request", answer, re.IGNORECASE):
        return (
            "the store cannot be reached; check the network and the endpoint (AWS_ENDPOINT_URL, or "
            "spark.hadoop.fs.s3a.endpoint)"
        )
    return "the client of the store gave no reason; check the URI, the endpoint and the region"
