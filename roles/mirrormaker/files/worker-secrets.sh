#!/bin/sh
# Makes the stores of a Connect worker's REST server, which reads no PEM: anew at each start, below
# /run, with a password that nobody else ever has. Run by the unit before the worker.
set -eu
umask 077
cd "$RUNTIME_DIRECTORY"
rm -f rest.p12 rest.trust.p12 rest.storepass ca-*.pem
head -c 24 /dev/urandom | base64 | tr -d '\n' > rest.storepass
openssl pkcs12 -export -name rest -in "$CREDENTIALS_DIRECTORY/rest.pem" -passout file:rest.storepass -out rest.p12
# Of a file with several certificates keytool takes the first alone.
awk '/BEGIN CERTIFICATE/ {n++} n {print > ("ca-" n ".pem")}' "$CREDENTIALS_DIRECTORY/rest.ca"
for ca in ca-*.pem; do
  "$JAVA_HOME/bin/keytool" -importcert -noprompt -alias "$ca" -file "$ca" \
    -keystore rest.trust.p12 -storetype PKCS12 -storepass:file rest.storepass > keytool.log 2>&1 ||
    { cat keytool.log >&2; exit 1; }
done
rm -f ca-*.pem keytool.log
