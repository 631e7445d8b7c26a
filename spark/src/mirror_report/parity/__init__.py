"""Content parity: whether every mirrored record is on the target, once, and unaltered.

The only rooms of the package that import pyspark. Pure functions from DataFrame to DataFrame
(:mod:`fingerprint`, :mod:`alignment`, :mod:`digest`, :mod:`compare`, :mod:`totals`, :mod:`drill`,
:mod:`pairing`, :mod:`compacted`), planning and memory without Spark (:mod:`plan`, :mod:`sides`,
:mod:`looking`, :mod:`strategies`, :mod:`cuts`, :mod:`aligning`, :mod:`scans`, :mod:`ranges`,
:mod:`memory`, :mod:`summary`, :mod:`telling`, :mod:`watched`), the steps of a run (:mod:`engine`,
:mod:`job`, :mod:`reading`, :mod:`drilling`, :mod:`going`, :mod:`scanning`, :mod:`scrubbing`,
:mod:`sealing`), the proof of a topic at rest (:mod:`proof`), and the edges: :mod:`session`,
:mod:`source`, :mod:`shelf`, :mod:`standing`.
"""

FINGERPRINT_VERSION = 1
"""Of the canonical encoding; part of the state: different encodings are never compared."""
