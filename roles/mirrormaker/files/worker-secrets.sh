#!/bin/sh
# Lays out what a Connect worker reads, below /run and anew at each start; run by the unit before it.
set -eu
umask 077
cd "$RUNTIME_DIRECTORY"
rm -rf kafka storepass rest.p12 rest.trust.p12 ca-*.pem
mkdir kafka storepass
# References of connectors lead to kafka/ and storepass/ alone: not to the REST server's users and key.
for file in "$CREDENTIALS_DIRECTORY"/*; do
  case "${file##*/}" in
    rest.users | rest.pem | rest.ca) ;;
    *) ln -s "$file" kafka/ ;;
  esac
done
[ -e "$CREDENTIALS_DIRECTORY/rest.pem" ] || exit 0
# Kafka's clients read PEM, its REST server does not: stores, with a password that nobody else ever has.
head -c 24 /dev/urandom | base64 | tr -d '\n' > storepass/rest.storepass
openssl pkcs12 -export -name rest -in "$CREDENTIALS_DIRECTORY/rest.pem" -passout file:storepass/rest.storepass -out rest.p12
# Of a file with several certificates keytool takes the first alone.
awk '/BEGIN CERTIFICATE/ {n++} n {print > ("ca-" n ".pem")}' "$CREDENTIALS_DIRECTORY/rest.ca"
for ca in ca-*.pem; do
  "$JAVA_HOME/bin/keytool" -importcert -noprompt -alias "$ca" -file "$ca" \
    -keystore rest.trust.p12 -storetype PKCS12 -storepass:file storepass/rest.storepass > keytool.log 2>&1 ||
    { cat keytool.log >&2; exit 1; }
done
rm -f ca-*.pem keytool.log
