"""moto's server with conditional writes that are atomic, as those of S3 are: it looks for the object, then writes it,
each in a thread of its own."""

from __future__ import annotations

import threading
from typing import Any

from moto.s3.responses import S3Response
from moto.server import main

_put = S3Response.put_object
_one_at_a_time = threading.Lock()


def _atomic(response: S3Response) -> tuple[int, dict[str, Any], str | bytes]:
    with _one_at_a_time:
        return _put(response)


if __name__ == "__main__":
    S3Response.put_object = _atomic  # type: ignore[method-assign,assignment]
    main()
