"""Records to changes: decode, fill unavailable values, fold, apply the quality gate, collect batch statistics."""
