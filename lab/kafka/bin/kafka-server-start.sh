#!/usr/bin/env bash
set -euo pipefail
bin=$(dirname -- "$(readlink -f -- "$0")")
export KAFKA_HEAP_OPTS=${KAFKA_HEAP_OPTS:--Xms1G -Xmx1G}
export KAFKA_LOG4J_OPTS=${KAFKA_LOG4J_OPTS:-$("$bin/log4j.sh" broker)}
exec "$bin/kafka-run-class.sh" kafka.Kafka "$@"
