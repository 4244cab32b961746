#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the certificates of this folder anew; see README.md.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
: > "$work/index.txt"
cat > "$work/ca.conf" <<END
[ca]
default_ca = all
[all]
new_certs_dir = $work
database = $work/index.txt
rand_serial = yes
unique_subject = no
default_md = sha256
policy = any
[any]
commonName = supplied
END
curve="ec -pkeyopt ec_paramgen_curve:P-256"

# authority NAME
authority() {
  openssl req -x509 -newkey $curve -nodes -days 36500 -subj "/CN=$1" -keyout "$work/$1.key" -out "$1.pem" \
    -addext keyUsage=critical,keyCertSign 2> /dev/null
}

# issue AUTHORITY NAME END EXTENSION...
issue() {
  by=$1 name=$2 end=$3
  shift 3
  printf '%s\n' basicConstraints=critical,CA:FALSE "$@" > "$work/extensions"
  openssl req -new -newkey $curve -nodes -subj "/CN=$name" -keyout "$name.key" -out "$work/request" 2> /dev/null
  openssl ca -batch -config "$work/ca.conf" -cert "$by.pem" -keyfile "$work/$by.key" -in "$work/request" -notext \
    -startdate 20200101000000Z -enddate "$end" -extfile "$work/extensions" -out "$name.pem" 2> /dev/null
}

late=21200101000000Z
both=extendedKeyUsage=serverAuth,clientAuth
authority authority
authority other-authority
for name in sender n1 n2; do
  issue authority "$name" $late $both "subjectAltName=DNS:$name.example.net"
done
issue authority n1-new $late $both subjectAltName=DNS:n1-new.example.net
issue authority address $late $both subjectAltName=IP:10.0.0.1,IP:fd00::1
issue authority wildcard $late "subjectAltName=DNS:*.Example.net"
issue authority expired 20210101000000Z $both subjectAltName=DNS:n1.example.net
issue authority server-only $late extendedKeyUsage=serverAuth subjectAltName=DNS:n1.example.net
issue authority nameless $late $both
issue other-authority foreign $late $both subjectAltName=DNS:n1.example.net
