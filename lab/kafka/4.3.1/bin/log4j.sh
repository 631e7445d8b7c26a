#!/usr/bin/env bash
# Prints the option that names a default logging configuration: log4j.sh tools|connect|broker.
config=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../config" && pwd)
case ${1:-tools} in
  broker) echo "-Dlog4j2.configurationFile=$config/log4j2.yaml" ;;
  *) echo "-Dlog4j2.configurationFile=$config/$1-log4j2.yaml" ;;
esac
