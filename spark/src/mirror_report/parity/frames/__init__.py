"""From DataFrame to DataFrame: fingerprints, digests, comparison, classes. No I/O."""
