#!/usr/bin/env bash
# Prints the option that names a default logging configuration: log4j.sh tools|connect|broker.
config=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../config" && pwd)
case ${1:-tools} in
  broker) echo "-Dlog4j.configuration=file:$config/log4j.properties" ;;
  *) echo "-Dlog4j.configuration=file:$config/$1-log4j.properties" ;;
esac
