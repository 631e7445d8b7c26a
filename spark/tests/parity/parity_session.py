"""A process with a session of the report: it prints what it has, and works for each line it reads.

Arguments: fields of Spark's settings as JSON. Output: lines of JSON.
"""

from __future__ import annotations

import json
import sys

from pyspark import SparkContext

from mirror_report.config import Spark
from mirror_report.parity import ParityError
from mirror_report.parity.spark.session import open_session


def main() -> None:
    """Open a session and serve it."""
    try:
        with open_session(Spark(**json.loads(sys.argv[1])), 0) as session:
            # Every executor is there, and has its ports open.
            assert session.range(0, 100, numPartitions=4).repartition(4).count() == 100
            environment = SparkContext._jvm.org.apache.spark.SparkEnv.get()
            manager = environment.securityManager()
            secret = manager.getSecretKey() if manager.isAuthenticationEnabled() else None
            answer({"secret": secret, "configured": dict(session.sparkContext.getConf().getAll())})
            for line in sys.stdin:
                name = SparkContext._jvm.org.apache.spark.storage.BlockId.apply(line.strip())
                held = environment.blockManager().getStatus(name).isDefined()
                answer({"count": session.range(1000).repartition(3).count(), "holds block": held})
    except ParityError as error:
        answer({"refused": str(error)})


def answer(document: dict[str, object]) -> None:
    """Write one line."""
    print(json.dumps(document), flush=True)


if __name__ == "__main__":
    main()
