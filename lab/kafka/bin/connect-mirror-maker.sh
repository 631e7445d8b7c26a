#!/usr/bin/env bash
set -euo pipefail
bin=$(dirname -- "$(readlink -f -- "$0")")
export KAFKA_HEAP_OPTS=${KAFKA_HEAP_OPTS:--Xms256M -Xmx2G}
export KAFKA_LOG4J_OPTS=${KAFKA_LOG4J_OPTS:-$("$bin/log4j.sh" connect)}
exec "$bin/kafka-run-class.sh" org.apache.kafka.connect.mirror.MirrorMaker "$@"
