#!/usr/bin/env bash
export KAFKA_HEAP_OPTS=${KAFKA_HEAP_OPTS:--Xmx512M}
exec "$(dirname -- "$0")/kafka-run-class.sh" org.apache.kafka.tools.ProducerPerformance "$@"
