"""`python -m bridge` is the same as `bridge`."""

import sys

from bridge.cli.app import main

sys.exit(main())
