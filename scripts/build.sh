# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What ./dev builds.

# Modules with a server part.
readonly SERVERS=(hello-http sip-edge media-relay echo-server udp-echo byte-count port-forward stream-reflector video-transcoder redact edge-cache active-cdn http-compressor converter guard token quota live-page net-monitor-live)

# What tests use beyond them.
readonly TESTED=(server-tests tcp-tests tcp-tests-first cache-tests toolbox)

# Further components are named.
build_modules() {
  local components=("${SERVERS[@]}" "$@")
  say "building the sample modules for $WASM_TARGET and $COMPONENT_TARGET"
  build_module "$WASM_TARGET"
  build_module "$COMPONENT_TARGET" "${components[@]}"
}

# As they are shipped: what is measured from here on takes these.
build_fast_modules() {
  export NETSERV_MODULES_PROFILE=dist
  build_modules "$@"
}

# The modules that a demo installs: packet parts, then components.
declare -rA DEMO_PACKETS=([none]="keep-alive echo guard" [sip]="sip-edge media-relay net-monitor-live" [move]="net-monitor" [stranger]="keep-alive echo")
declare -rA DEMO_COMPONENTS=([none]="guard" [sip]="sip-edge media-relay net-monitor-live" [compressor]="http-compressor"
  [cdn]="active-cdn" [radio]="stream-reflector" [video]="video-transcoder")

# build_demo_modules APP
build_demo_modules() {
  local packets components
  read -r -a packets <<< "${DEMO_PACKETS[$1]:-}"
  read -r -a components <<< "${DEMO_COMPONENTS[$1]:-}"
  say "building the modules of the demo: $(printf '%s\n' "${packets[@]}" "${components[@]}" | sort -u | xargs)"
  [ ${#packets[@]} -eq 0 ] || build_module "$WASM_TARGET" "${packets[@]}"
  [ ${#components[@]} -eq 0 ] || build_module "$COMPONENT_TARGET" "${components[@]}"
}

# build_module TARGET [PACKAGES]: the default members if none is named. From their folder, since cargo reads
# .cargo/config.toml (the size of the stack) by the current directory.
build_module() {
  local target=$1
  shift
  (cd modules && cargo build --quiet --profile "${NETSERV_MODULES_PROFILE:-release}" --target "$target" "${@/#/--package=}")
}

# Built once for all profiles, and put beside the programs of each, where netservd looks for it.
build_java() {
  need_java
  say "building the Java host, its building blocks and sample bundles"
  maven package -DskipTests
  java/samples/repository.sh 2>&1 | plain >&2
  local profile
  for profile in debug release demo; do
    mkdir -p "$(built $profile)"
    rm -rf "$(built $profile)/netserv-java"
    cp -r java/dist "$(built $profile)/netserv-java"
  done
}

maven() { (cd java && mvn --quiet --batch-mode "$@" 2>&1) | plain >&2; }

# Takes the colours out of what goes to a file: Maven writes some whatever it is told.
plain() { if [ -n "$BOLD" ]; then cat; else sed -u $'s/\033\\[[0-9;]*m//g'; fi; }

# The programs of a node and of the lab. Of the whole workspace, since alone a crate's dependencies may have other features
# and be built once more.
build_programs() {
  say "building netservd, netserv, netserv-agent, netserv-worker, netserv-jvm and netserv-lab${1:+ ($1)}; the first time takes some minutes"
  cargo build --workspace --bin netservd --bin netserv --bin netserv-agent --bin netserv-worker --bin netserv-jvm --bin netserv-lab "${while_built[@]}" ${1:+"$1"}
}

# built PROFILE: where the programs are.
built() { echo "${CARGO_TARGET_DIR:-target}/$1"; }
