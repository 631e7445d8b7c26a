#!/usr/bin/env bash
# Starts one Java class of this Kafka. Honours JAVA_HOME, CLASSPATH, KAFKA_HEAP_OPTS,
# KAFKA_JVM_PERFORMANCE_OPTS, KAFKA_OPTS, KAFKA_JMX_OPTS, JMX_PORT, KAFKA_LOG4J_OPTS and LOG_DIR,
# as the scripts of Apache's own archive do.
set -euo pipefail

if [ $# -lt 1 ]; then
  echo "usage: ${0##*/} CLASS [ARGUMENT ...]" >&2
  exit 1
fi

base=$(cd -- "$(dirname -- "$(readlink -f -- "$0")")/.." && pwd)
java=${JAVA_HOME:+$JAVA_HOME/bin/}java
logs=${LOG_DIR:-$base/logs}

if [ -n "${KAFKA_LOG4J_OPTS:-}" ]; then
  mkdir -p -- "$logs"
else
  KAFKA_LOG4J_OPTS=$("$base/bin/log4j.sh" tools)
fi

performance='-server -XX:+UseG1GC -XX:MaxGCPauseMillis=20 -XX:InitiatingHeapOccupancyPercent=35'
performance+=' -XX:+ExplicitGCInvokesConcurrent -XX:MaxInlineLevel=15 -Djava.awt.headless=true'

jmx=-Dcom.sun.management.jmxremote
KAFKA_JMX_OPTS=${KAFKA_JMX_OPTS:-$jmx $jmx.authenticate=false $jmx.ssl=false}
if [ -n "${JMX_PORT:-}" ]; then
  KAFKA_JMX_OPTS+=" $jmx.port=$JMX_PORT"
  [[ $KAFKA_JMX_OPTS == *"$jmx.rmi.port="* ]] || KAFKA_JMX_OPTS+=" $jmx.rmi.port=$JMX_PORT"
fi

# The variables hold several options each: splitting them at spaces is their contract.
# shellcheck disable=SC2086
exec "$java" ${KAFKA_HEAP_OPTS:--Xmx256M} ${KAFKA_JVM_PERFORMANCE_OPTS:-$performance} \
  $KAFKA_JMX_OPTS -Dkafka.logs.dir="$logs" $KAFKA_LOG4J_OPTS \
  -cp "${CLASSPATH:+$CLASSPATH:}$base/libs/*" ${KAFKA_OPTS:-} "$@"
