# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Everything that takes long, part by part: what is run before an issue is closed.

# Parts in the order in which they run, each a command of ./dev.
readonly SOAK_PARTS=("ci --all" guards newest-jdk truth floods servers joined cdn cache compressor radio video sip media
  relocations redirects agent "bench --check" explore)
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

# Each fuzz target for a while, on the nightly toolchain.
readonly EXPLORE_SECONDS=${EXPLORE_SECONDS:-60}

cmd_explore() {
  local target targets=()
  cargo +nightly fuzz --version >/dev/null 2>&1 || { say "NOT RUN: no cargo-fuzz, or no nightly toolchain"; return "$NOT_RUN"; }
  mapfile -t targets < <(basename -s .rs -a fuzz/fuzz_targets/*.rs)
  for target in "${targets[@]}"; do cmd_fuzz "$target" "$EXPLORE_SECONDS"; done
  done_line "${#targets[@]} fuzz targets found nothing in $EXPLORE_SECONDS s each"
}
