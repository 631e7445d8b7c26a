"""Content parity: whether every mirrored record is on the target, once, and unaltered.

The only rooms of the package that import pyspark. Pure functions from DataFrame to DataFrame
(:mod:`fingerprint`, :mod:`digest`, :mod:`compare`, :mod:`drill`), pure planning without Spark
(:mod:`plan`, :mod:`compacted`), and the edges: :mod:`session`, :mod:`source`, :mod:`job`,
:mod:`engine`.
"""

FINGERPRINT_VERSION = 1
"""Of the canonical encoding; part of the state: different encodings are never compared."""
