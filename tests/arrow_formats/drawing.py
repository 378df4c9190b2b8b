"""How often drawn tests are played: each draw is compared with Spark, which takes too long to make it smaller."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, settings


def times(count: int) -> settings:
    """Play `count` examples, and print what repeats one that fails."""
    return settings(
        max_examples=count,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )
