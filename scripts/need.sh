# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What the commands of ./dev need, and how it is installed.

# need COMMAND PACKAGE REASON: notes a Debian package for installation if the command is missing.
missing_packages=()
need() {
  command -v "$1" >/dev/null 2>&1 || [ -x "/usr/sbin/$1" ] || [ -x "/sbin/$1" ] && return 0
  is_noted "$2" && return 0
  say "missing: $2 ($3)"
  missing_packages+=("$2")
}

# need_header FILE PACKAGE REASON: the same of a header.
need_header() {
  [ -e "/usr/include/$1" ] || is_noted "$2" || { say "missing: $2 ($3)"; missing_packages+=("$2"); }
}

is_noted() { [[ " ${missing_packages[*]} " == *" $1 "* ]]; }

install_missing() {
  [ ${#missing_packages[@]} -eq 0 ] && return 0
  local run=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null 2>&1 || fail "not root, and no sudo" "as root: apt-get install ${missing_packages[*]}"
    run=(sudo)
  fi
  command -v apt-get >/dev/null 2>&1 || fail "no apt-get here" "install by your own means: ${missing_packages[*]}"
  say "installing with apt-get: ${missing_packages[*]}"
  apt_get update -qq
  apt_get install -y -qq --no-install-recommends "${missing_packages[@]}"
  missing_packages=()
}

# How long another program may hold apt's lock, as unattended upgrades do after a start of the machine.
readonly APT_LOCK_SECONDS=${APT_LOCK_SECONDS:-900}

# apt_get WORDS: runs apt-get, and waits for whoever holds its lock.
apt_get() {
  local log until=$((SECONDS + APT_LOCK_SECONDS)) told=''
  log=$(mktemp)
  until DEBIAN_FRONTEND=noninteractive "${run[@]}" apt-get "$@" >"$log" 2>&1; do
    if ! grep -qE 'Could not get lock|Unable to (acquire|lock)' "$log" || [ "$SECONDS" -ge "$until" ]; then
      tail -n 20 "$log" >&2
      rm -f "$log"
      fail "apt-get $* ended with an error" "see the lines above"
    fi
    [ -n "$told" ] || say "another program holds apt's lock ($(sed -n 's/.*held by process \([0-9]* ([^)]*)\).*/\1/p' "$log" | head -1)); waiting up to $((APT_LOCK_SECONDS / 60)) minutes"
    told=yes
    sleep 2
  done
  rm -f "$log"
}

need_build() {
  need cc gcc "links the programs, and compiles SQLite"
  need mold mold "links quickly"
  need clang-14 clang-14 "compiles the XDP program"
  install_missing
  need_rust
}

note_java() {
  need javac default-jdk-headless "compiles the Java host, and runs OSGi bundles"
  need mvn maven "builds the Java host"
}

need_java() {
  note_java
  install_missing
  local have
  have=$(javac -version 2>&1 | sed -n 's/^javac \([0-9]*\).*/\1/p')
  [ "${have:-0}" -ge "$JAVA_MIN" ] ||
    fail "the Java compiler is version ${have:-unknown}, $JAVA_MIN is needed" "install a newer JDK, on Debian 12 or later default-jdk-headless"
}

need_rust() {
  # shellcheck disable=SC1091
  command -v cargo >/dev/null 2>&1 || { [ -f "$HOME/.cargo/env" ] && . "$HOME/.cargo/env"; } || true
  command -v cargo >/dev/null 2>&1 || install_rust
  if command -v rustup >/dev/null 2>&1; then
    rustup show active-toolchain >/dev/null 2>&1 || { say "fetching the Rust toolchain of rust-toolchain.toml"; rustup toolchain install >&2; }
    local target
    for target in "$WASM_TARGET" "$COMPONENT_TARGET"; do
      if ! rustup target list --installed 2>/dev/null | grep -qx "$target"; then
        say "adding the Rust target $target (modules are built for it)"
        rustup target add "$target" >&2
      fi
    done
  fi
  local have
  have=$(rustc --version | awk '{print $2}')
  [ "$(printf '%s\n%s\n' "$RUST_MIN" "$have" | sort -V | head -1)" = "$RUST_MIN" ] ||
    fail "Rust is $have, $RUST_MIN is needed" "rustup toolchain install $RUST_MIN"
}

install_rust() {
  if apt-cache show rustup >/dev/null 2>&1; then
    say "missing: rustup (brings Rust $RUST_MIN)"
    missing_packages+=(rustup)
    install_missing
    return
  fi
  # Debian 12 has no rustup package and an older Rust.
  say "missing: Rust $RUST_MIN; fetching it with the Rust project's own installer, for this user only"
  need curl curl "fetches the installer"
  install_missing
  curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y --quiet --profile minimal --default-toolchain none >&2 ||
    fail "Rust could not be fetched" "install rustup by hand (https://rustup.rs), then run this again"
  # shellcheck disable=SC1091
  . "$HOME/.cargo/env"
}

need_lab() {
  need ip iproute2 "makes namespaces and links"
  need iptables iptables "has rules of others beside the node's"
  need nft nftables "shows rules, and takes them away"
  need nc netcat-openbsd "sends the text that the echo module returns"
  need curl curl "asks the node's API in tests"
  need nginx nginx "serves module packages"
  need dnsmasq dnsmasq-base "is the name server"
  need ethtool ethtool "turns offloads off on links that lose packets"
  need ping iputils-ping "looks whether the lab's hosts reach each other"
}

need_voip() {
  need kamailio kamailio "is the SIP server"
  need sipp sip-tester "is the phones"
  need baresip baresip-core "is a phone that talks"
  need bird bird2 "moves routes as a network's own routing does"
  need tcpdump tcpdump "captures what the labs send"
}

need_radio() {
  need icecast2 icecast2 "is the radio server"
  need ffmpeg ffmpeg "is its source, and converts sound and pictures for modules"
  need mpg123 mpg123 "decodes what listeners hear"
}

need_video() {
  need ffmpeg ffmpeg "is the camera, and makes of its video what a small device shows"
  need chromium chromium "is the device"
  install_missing
}

need_test() {
  note_java
  need_lab
  need_voip
  need rtpengine rtpengine-daemon "is the relay that media-relay is compared with"
  need_radio
  need prometheus prometheus "is asked by the agent"
  need skopeo skopeo "reads our packages as any OCI tool does"
  need docker-registry docker-registry "takes packages as any registry does"
  need wasm-ld-14 lld-14 "links packet modules in C"
  need tshark tshark "runs the Wireshark dissector"
  need firewall-cmd firewalld "owns rules beside the node's"
  need NetworkManager network-manager "configures devices beside the node"
  need /lib/systemd/systemd-networkd systemd "does so as well"
  need openssl openssl "speaks TLS as strangers do"
  need apache2 apache2 "is a web server whose address vouches for a user"
  need rpki-client rpki-client "is the relying party whose verdicts are compared with ours"
  need fort fort-validator "is the other one, whose cache a node reads"
  need python3 python3 "serves and asks from inside the networks of containers"
  need wrk wrk "asks many times over HTTP"
  need chromium chromium "is the browser"
  need node nodejs "runs the tests of HTTP caches"
  need npm npm "fetches the tests of HTTP caches"
  # With the modules that perl-base, which is always there, lacks.
  perl -MTime::HiRes -e 1 2>/dev/null || { say "missing: perl (sends streams of packets)"; missing_packages+=(perl); }
}

# Tools of cargo: the least version, and the digest of the package that has it ready-made for x86_64.
readonly NEXTEST=(cargo-nextest 0.9.148 76d7faec7ba7e1f15f888268761bb1449309b1eb801ec5cbe9c04a5685f42968)
readonly DENY=(cargo-deny 0.20.2 ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee)

need_nextest() { need_tool "${NEXTEST[@]}"; }
need_deny() { need_tool "${DENY[@]}"; }

# need_tool NAME VERSION DIGEST: takes the program if this version or a later one is there. Fetches it ready-made with pip
# where that is to be had, since building it takes minutes.
need_tool() {
  local name=$1 version=$2 have folder
  folder=$(cache)/$name-$version
  PATH=$folder/bin:$PATH
  have=$("$name" "${name#cargo-}" --version 2>/dev/null | awk 'NR == 1 { print $2 }' || true)
  [ -n "$have" ] && [ "$(printf '%s\n%s\n' "$version" "$have" | sort -V | head -1)" = "$version" ] && return 0
  mkdir -p "$folder/bin"
  fetch_tool "$@" "$folder" && return 0
  say "building $name $version, once"
  cargo install --quiet --locked --root "$folder" "$name@$version" >&2 || fail "$name $version could not be built" "cargo install --locked $name"
}

# fetch_tool NAME VERSION DIGEST FOLDER: by a package that Astral builds from the tool's own release.
fetch_tool() {
  [ "$(uname -m)" = x86_64 ] && command -v pip >/dev/null 2>&1 || return 1
  say "fetching $1 $2 with pip"
  printf 'astral-dev-toolchain-%s==%s --hash=sha256:%s\n' "$1" "$2" "$3" > "$4/requirements.txt"
  pip download --quiet --disable-pip-version-check --no-deps --require-hashes -r "$4/requirements.txt" -d "$4" >&2 &&
    python3 -m zipfile -e "$4"/*.whl "$4" &&
    install -m 755 "$4"/*.data/scripts/"$1" "$4/bin/" && rm -rf "$4"/*.data "$4"/*.dist-info "$4"/*.whl
}

# Where ./dev keeps what several checkouts use.
cache() { echo "${NETSERV_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/netserv}"; }

# Fetches the tests of cache-tests.fyi; lab/http-cache-tests/package.json has their version.
need_cache_tests() {
  install_missing
  local into=target/http-cache-tests
  mkdir -p "$into"
  cmp -s lab/http-cache-tests/package.json "$into/package.json" && [ -e "$into/node_modules/http-cache-tests/cli.mjs" ] && return 0
  say "fetching the tests of HTTP caches with npm"
  cp lab/http-cache-tests/package.json "$into/"
  npm install --prefix "$into" --ignore-scripts --no-audit --no-fund --no-package-lock --loglevel=error >&2 ||
    say "npm could not fetch them: their test says SKIPPED, and fails in CI"
}

need_guards() {
  need valgrind valgrind "counts instructions"
}

need_bench() {
  need_lab
  need wrk wrk "asks many times over HTTP"
  need iperf3 iperf3 "measures what one TCP flow carries"
  need fcgiwrap fcgiwrap "makes a process for each request, to compare with"
  need pkg-config pkg-config "finds libnetfilter_queue"
  need_header libmnl/libmnl.h libmnl-dev "netlink for the null verdict in C"
  need_header libnetfilter_queue/libnetfilter_queue.h libnetfilter-queue-dev "the null verdict in C to compare with"
}
