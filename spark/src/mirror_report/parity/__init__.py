"""Content parity: whether every mirrored record is on the target, once, and unaltered.

:mod:`~mirror_report.parity.run` is one run, top to bottom. ``plan`` says what to read, ``frames``
compares it, ``spark`` reads and writes, ``steps`` puts these together, ``results`` says what is
reported, ``state`` is kept between runs. Only ``frames``, ``spark`` and ``steps`` import pyspark.
"""

FINGERPRINT_VERSION = 1
"""Of the canonical encoding; part of the state: different encodings are never compared."""
