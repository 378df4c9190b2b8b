"""What surrounds every run: lease, preflight checks, query state, monitoring, errors, retention, check results."""
