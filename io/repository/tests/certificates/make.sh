#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the certificates of this folder anew: an authority, and servers at addresses, each with its key behind it in one file. The
# authority's key is thrown away.
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

# issue NAME END ALTERNATIVES
issue() {
  printf '%s\n' basicConstraints=critical,CA:FALSE "subjectAltName=$3" > "$work/extensions"
  openssl req -new -newkey $curve -nodes -subj "/CN=$1" -keyout "$work/key" -out "$work/request" 2> /dev/null
  openssl ca -batch -config "$work/ca.conf" -cert authority.pem -keyfile "$work/authority.key" -in "$work/request" -notext \
    -startdate 20200101000000Z -enddate "$2" -extfile "$work/extensions" -out "$work/certificate" 2> /dev/null
  cat "$work/certificate" "$work/key" > "$1.pem"
}

openssl req -x509 -newkey $curve -nodes -days 36500 -subj "/CN=authority" -keyout "$work/authority.key" \
  -out authority.pem -addext keyUsage=critical,keyCertSign 2> /dev/null
late=21200101000000Z
issue address "$late" IP:127.0.0.1,IP:::1
issue elsewhere "$late" IP:192.0.2.1,DNS:site.example
issue expired 20210101000000Z IP:127.0.0.1,IP:::1
