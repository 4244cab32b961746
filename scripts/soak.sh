# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Everything that takes long, part by part: what is run before an issue is closed.

# Parts in the order in which they run, each a command of ./dev.
readonly SOAK_PARTS=("ci --all" guards newest-jdk truth floods servers joined cdn cache compressor radio video sip media
  relocations redirects agent busy cold "package --test" "bench --check" explore)
# The exit code of a part that cannot run on this machine, which no other program here ends with.
readonly NOT_RUN=77
readonly SOAK_PAGE=docs/soak.md

# Runs the parts that have no result for this commit, or those that are named.
cmd_soak() {
  local part parts=("${SOAK_PARTS[@]}") failed=()
  if [ $# -gt 0 ]; then parts=("$@"); forget_results "$@"; fi
  mkdir -p "$(soak_folder)"
  for part in "${parts[@]}"; do
    [ -e "$(soak_folder)/$part" ] || soak_part "$part"
  done
  write_soak_page
  sed -n '/^|/p' "$SOAK_PAGE" >&2
  mapfile -t failed < <(grep -l '^failed' "$(soak_folder)"/* | xargs -rd '\n' -n 1 basename)
  [ ${#failed[@]} -eq 0 ] || fail "parts of soak: ${failed[*]}" "$(soak_folder).log has what each said"
  done_line "soak: $(find "$(soak_folder)" -type f | wc -l) of ${#SOAK_PARTS[@]} parts have a result; $SOAK_PAGE has them"
}

# One file per part, of this commit: result, seconds, date.
soak_folder() { echo "target/soak/$(git rev-parse --short HEAD)"; }

forget_results() {
  local part
  for part in "$@"; do rm -f "$(soak_folder)/$part"; done
}

# soak_part PART: runs it to its end, whatever that is.
soak_part() {
  local begun=$SECONDS code=0 result
  say "soak: ./dev $1"
  # A part is a command and its arguments.
  # shellcheck disable=SC2086
  ./dev $1 </dev/null >"$(soak_folder).part" 2>&1 || code=$?
  case $code in 0) result=passed ;; "$NOT_RUN") result="not run" ;; *) result=failed ;; esac
  { printf '\n=== %s: %s\n' "$1" "$result"; cat "$(soak_folder).part"; } >> "$(soak_folder).log"
  [ "$result" = passed ] || tail -n 5 "$(soak_folder).part" >&2
  rm -f "$(soak_folder).part"
  printf '%s|%s|%s\n' "$result" "$((SECONDS - begun))" "$(date -u +%F)" > "$(soak_folder)/$1"
  say "soak: ./dev $1: $result ($((SECONDS - begun)) s)"
}

# The page has the last result of each part, of this commit or an earlier one.
write_soak_page() {
  local part row rows
  rows=$(mktemp)
  for part in "${SOAK_PARTS[@]}"; do
    if [ -e "$(soak_folder)/$part" ]; then
      IFS='|' read -r -a row < "$(soak_folder)/$part"
      echo "| \`./dev $part\` | ${row[0]} | ${row[1]} | $(git rev-parse --short HEAD) | ${row[2]} | $(machine) |"
    else
      grep -F "| \`./dev $part\` |" "$SOAK_PAGE" 2>/dev/null || echo "| \`./dev $part\` | no result yet | | | | |"
    fi
  done > "$rows"
  { cat <<'TEXT'
# The long tests

`./dev soak` runs everything that takes too long for CI, and writes this page. It goes on where it ended; `./dev soak PART`
runs one part again. Its whole run is due before an issue is closed.

| part | last result | seconds | commit | date | machine |
|---|---|---|---|---|---|
TEXT
    cat "$rows"
  } > "$SOAK_PAGE"
  rm -f "$rows"
}

machine() { echo "$(nproc) cores, $(awk '/^MemTotal/ { print int($2 / 1048576 + 0.5) }' /proc/meminfo) GB, Linux $(uname -r | cut -d - -f 1)"; }

# The Java host on the newest other JDK.
cmd_newest-jdk() {
  need_build; build_modules; build_java
  test_java_newest
  report_retried
}

# The demo as on a new machine: a clone of this commit, in which nothing was compiled, and nothing kept from before.
readonly COLD_SECONDS_MAX=360 COLD_PROCESSOR_SECONDS_MAX=600

cmd_cold() {
  need_lab; need_build
  as_root_or_fail "the demo makes network namespaces"
  local folder real user system code=0 TIMEFORMAT='%0R %0U %0S'
  folder=$(mktemp -d -t netserv-cold-XXXXXX)
  git clone --quiet . "$folder/netserv"
  (cd "$folder/netserv"; unset CARGO_TARGET_DIR; export NETSERV_CACHE=$folder/cache; time ./dev demo >"$folder/said" 2>&1) 2>"$folder/took" || code=$?
  tail -n 3 "$folder/said" >&2
  read -r real user system < <(tail -n 1 "$folder/took")
  rm -rf "$folder"
  [ "$code" -eq 0 ] || fail "the demo in a new clone" "./dev demo in a new clone says more"
  say "the demo of a new clone took $real s (at most $COLD_SECONDS_MAX), $((user + system)) s of processor time (at most $COLD_PROCESSOR_SECONDS_MAX)"
  [ "$real" -le "$COLD_SECONDS_MAX" ] && [ $((user + system)) -le "$COLD_PROCESSOR_SECONDS_MAX" ] ||
    fail "the demo of a new clone takes too long" "cargo build --timings --profile demo in a new clone says what does"
  done_line "the demo of a new clone keeps its goals"
}

# Each demo twice: as the machine is, and beside so many loops that do nothing but compute.
readonly BUSY_LOOPS=10 BUSY_SECONDS_MAX=1800
readonly DEMOS=(sip compressor cdn radio move video stranger)

cmd_busy() {
  local app loop loops=() failed=() begun
  for app in "${DEMOS[@]}"; do ./dev demo --app "$app" >/dev/null || fail "the demo of $app on this machine as it is" "./dev demo --app $app"; done
  for ((loop = 0; loop < BUSY_LOOPS; loop++)); do
    timeout "$BUSY_SECONDS_MAX" bash -c 'while :; do :; done' & loops+=($!)
  done
  for app in "${DEMOS[@]}"; do
    begun=$SECONDS
    ./dev demo --app "$app" >/dev/null || failed+=("$app")
    say "demo of $app beside $BUSY_LOOPS loops: $((SECONDS - begun)) s"
  done
  kill "${loops[@]}" 2>/dev/null || true
  [ ${#failed[@]} -eq 0 ] || fail "demos on a busy machine: ${failed[*]}" "./dev demo --app ${failed[0]} says what it waited for"
  done_line "${#DEMOS[@]} demos hold beside $BUSY_LOOPS loops"
}

# Each fuzz target for a while, on the nightly toolchain.
readonly EXPLORE_SECONDS=${EXPLORE_SECONDS:-60}

cmd_explore() {
  local target targets=()
  cargo +nightly fuzz --version >/dev/null 2>&1 || { say "NOT RUN: no cargo-fuzz, or no nightly toolchain"; return "$NOT_RUN"; }
  mapfile -t targets < <(basename -s .rs -a fuzz/fuzz_targets/*.rs)
  for target in "${targets[@]}"; do cmd_fuzz "$target" "$EXPLORE_SECONDS"; done
  done_line "${#targets[@]} fuzz targets found nothing in $EXPLORE_SECONDS s each"
}
