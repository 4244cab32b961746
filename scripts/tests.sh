# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Lint, tests and guards: what CI runs.

# What CI builds is linted while it is compiled: clippy alone would check everything, and all dependencies, once more.
readonly LINTED=(--config 'build.rustc-workspace-wrapper="clippy-driver"')
# Arguments of each cargo command that compiles what tests run.
while_built=()
lint_while_built() {
  command -v clippy-driver >/dev/null 2>&1 || fail "clippy is missing" "rustup component add clippy"
  # This one would be taken in place of it.
  unset RUSTC_WORKSPACE_WRAPPER
  while_built=("${LINTED[@]}")
  export CLIPPY_ARGS="-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__"
}

cmd_lint() {
  local strict=()
  [ -z "${CI:-}" ] || strict=(-- -D warnings)
  lint_text
  say "clippy"
  cargo clippy --quiet --workspace --all-targets "${strict[@]}"
  lint_modules
}

# Format, and what `deny.toml` says of dependencies.
lint_text() {
  need_build
  local manifest
  say "format"
  for manifest in Cargo.toml modules/Cargo.toml; do
    cargo fmt --all --check --manifest-path "$manifest" -- --color "$COLOUR" || fail "code is not formatted" "cargo fmt --all --manifest-path $manifest"
  done
  say "licences and sources of dependencies"
  need_deny
  # Advisories are fetched from elsewhere: `cargo deny check advisories` before a release.
  for manifest in Cargo.toml modules/Cargo.toml; do
    cargo-deny --log-level error --manifest-path "$manifest" --config deny.toml check bans licenses sources >&2 || fail "deny.toml does not hold of $manifest" "see above"
  done
}

# For release and a named target, as modules are built: so what runs while they are built is built once.
lint_modules() {
  local host strict=()
  host=$(rustc -vV | sed -n 's/^host: //p')
  [ -z "${CI:-}" ] || strict=(-- -D warnings)
  say "clippy of the modules"
  (cd modules && cargo clippy --quiet --workspace --all-targets --release --target "$host" "${strict[@]}")
}

# Arguments go to `cargo nextest run`.
cmd_test() {
  prepare_tests
  if [ $# -gt 0 ]; then nextest "$@"; done_line "these tests passed"; return; fi
  run_tests
  report_not_run; report_retried
  done_line "all tests passed"
}

# All that tests use, once.
prepare_tests() {
  need_test; need_build; need_nextest; need_cache_tests
  [ "$(id -u)" -eq 0 ] || say "not root: tests that need namespaces or sandboxes will say SKIPPED"
  build_modules "${TESTED[@]}"; build_java; build_programs
}

# The Java host's tests leave a core idle, and so do the linkers of the node's: both at a time.
run_tests() {
  local java log compiled=0
  log=$(mktemp)
  build_natives
  test_java >"$log" 2>&1 & java=$!
  say "building the tests of the node"
  nextest --profile ci --no-run || compiled=$?
  wait "$java" || { cat "$log" >&2; fail "tests of the Java host" "see above"; }
  cat "$log" >&2
  rm -f "$log"
  [ "$compiled" -eq 0 ] || fail "the tests of the node do not compile, or clippy warns of them" "see above"
  note_retried java
  test_node "$@"
  test_modules
}

# The node's tests, with a look at what they leave: a test that was not run, one that passed only when retried.
test_node() {
  local reports=target/nextest/ci all=()
  say "tests of the node, and replay of the fuzz corpus"
  if [ "${1:-}" = --all ]; then all=(--ignore-default-filter); export NETSERV_FULL=1; fi
  rm -rf "$reports" "$reports-again" "$(skips)"
  nextest --profile ci "${all[@]}" || retry_alone "$reports/junit.xml" || fail "tests of the node" "see above; ./dev test NAME runs some of them"
}

# A run in which more fail is not tried again.
readonly RETRIED_MAX=5

# retry_alone REPORT: runs what failed once more, one test after another, and takes the names.
retry_alone() {
  local names
  mapfile -t names < <(failed_tests "$1")
  if [ ${#names[@]} -eq 0 ] || [ ${#names[@]} -gt $RETRIED_MAX ]; then return 1; fi
  say "${#names[@]} failed; each once more, alone: ${names[*]}"
  nextest --profile ci-again --ignore-default-filter -E "$(printf '%s\n' "${names[@]}" | sed 's/\(.*\) \(.*\)/(binary_id(=\1) \& test(=\2))/' | paste -sd '|')" || return 1
  retried+=("${names[@]/ /.}")
}

# failed_tests REPORT: binary and name of each test that failed, as nextest's JUnit report has them.
failed_tests() {
  [ -s "$1" ] || return 0
  awk '
    /<testcase / { name = $0; sub(/.* name="/, "", name); sub(/".*/, "", name)
                   class = $0; sub(/.* classname="/, "", class); sub(/".*/, "", class) }
    /<(failure|error)[ >]/ && class " " name != last { last = class " " name; print last }' "$1"
}

# Lab nodes take code from each other, but where a test is about how long it takes to compile.
nextest() {
  NETSERV_LAB_CODE_DIR="$PWD/target/lab-code" NETSERV_MODULES_BUILT=1 NETSERV_SKIPS="$(skips)" \
    cargo-nextest nextest run --workspace "${while_built[@]}" "$@"
}

# Modules are tested as programs of this machine.
test_modules() {
  say "tests of the sample modules"
  (cd modules && cargo test --quiet "$@")
}

# --- what did not run, and what passed only when retried ---------------------------------------------------------------

# The file in which tests note what they did not run; `lab/skips` writes it.
skips() { echo "$PWD/target/skipped"; }

# Each test, or part of one, that did not run, with the reason.
report_not_run() {
  local file
  file=$(skips)
  if [ ! -s "$file" ]; then say "0 tests or parts of tests were not run"; return; fi
  say "$(sort -u "$file" | wc -l) tests or parts of tests were not run:"
  sort -u "$file" | sed 's/^/      /' >&2
}

# At most so many tests of one run may pass only when retried; 1 once five runs in a row had none.
readonly FLAKES_MAX=2
# A test may stand so often in the record of those that passed only when retried; the next time fails CI.
readonly FLAKES_RECORDED_MAX=2
# Names of the tests that failed and then passed.
retried=()

# note_retried DIR: takes the names from the JUnit reports below a folder, as Surefire writes them.
note_retried() {
  local names
  mapfile -t names < <(find "$1" -name 'TEST-*.xml' -exec awk '
    /<testcase / { name = $0; sub(/.* name="/, "", name); sub(/".*/, "", name)
                   class = $0; sub(/.* classname="/, "", class); sub(/".*/, "", class) }
    /<flaky(Failure|Error)/ && class "." name != last { last = class "." name; print last }' {} +)
  retried+=("${names[@]}")
}

# The record of a clean checkout goes with it, so CI has one that stays on its machine.
flakes_record() { if [ -n "${CI:-}" ]; then echo "${FLAKES_RECORD:-$(cache)/flakes.md}"; else echo "${FLAKES_RECORD:-docs/flakes.md}"; fi; }

# The last word of a run: tests that pass only sometimes are seen, recorded, and fail the run when there are too many.
report_retried() {
  if [ ${#retried[@]} -eq 0 ]; then say "0 tests passed only when retried"; return; fi
  local record name before again=()
  record=$(flakes_record)
  mkdir -p "$(dirname "$record")"
  for name in "${retried[@]}"; do
    before=$(grep -cF "| \`$name\` |" "$record" 2>/dev/null || true)
    [ "${before:-0}" -lt "$FLAKES_RECORDED_MAX" ] || again+=("$name")
    printf '| %s | %s | `%s` |\n' "$(date -u +%F)" "$(git rev-parse --short HEAD 2>/dev/null || echo -)" "$name" >> "$record"
  done
  say "${#retried[@]} tests passed only when retried: ${retried[*]}; $record has them"
  [ ${#again[@]} -eq 0 ] || fail "${again[*]} passed only when retried, more than $FLAKES_RECORDED_MAX times" "mend the test, or what it found, and take its lines out of $record"
  [ ${#retried[@]} -le $FLAKES_MAX ] || fail "more than $FLAKES_MAX tests passed only when retried" "mend them"
}

# --- Java --------------------------------------------------------------------------------------------------------------

# The tests of the Java host on the JDK of the compiler. Here, too, one that fails and then passes is counted and named.
test_java() {
  say "tests of the Java host"
  maven verify -Dsurefire.rerunFailingTestsCount=1 -Dnetserv.natives="$(natives)"
}

# The same on the newest other JDK that is there.
test_java_newest() {
  local newest
  newest=$(newest_jdk)
  if [ -z "$newest" ]; then say "NOT RUN: tests of the Java host on a newer JDK: there is none below /usr/lib/jvm"; return "$NOT_RUN"; fi
  say "tests of the Java host on $newest"
  build_natives
  maven verify -Dsurefire.rerunFailingTestsCount=1 -Dnetserv.natives="$(natives)" -Djvm="$newest/bin/java"
  note_retried java
}

# The native side of building blocks, which the Java host's tests load: a copy, since cargo may write its own while they run.
build_natives() {
  cargo build --quiet --workspace --example netserv_natives "${while_built[@]}"
  cp "$(built debug)/examples/libnetserv_natives.so" "$(natives)"
}

natives() { echo "$(realpath "$(built debug)")/libnetserv_natives.so"; }

# Prints the home of the newest JDK that is newer than the compiler's.
newest_jdk() {
  local home version best='' found
  best=$(javac -version 2>&1 | sed -n 's/^javac \([0-9]*\).*/\1/p')
  for home in /usr/lib/jvm/*/; do
    if ! { [ -x "$home/bin/java" ] && [ -r "$home/release" ]; }; then continue; fi
    version=$(sed -n 's/^JAVA_VERSION="\([0-9]*\).*/\1/p' "$home/release")
    if [ "${version:-0}" -gt "$best" ]; then best=$version; found=${home%/}; fi
  done
  echo "${found:-}"
}

# --- guards ------------------------------------------------------------------------------------------------------------

# What the counts depend on, and the file with the digest of it for which they were last found to hold.
readonly HOT=(Cargo.lock Cargo.toml rust-toolchain.toml core/model/src core/wire/src core/authority/src core/gist/src core/nslp/src
  core/controller/src core/node/src io/plane/src io/plane-afxdp/src io/plane-nfqueue/src io/netlink/src io/worker/base/src io/worker/packet/src io/worker/wasm/src io/worker/src
  io/worker/tests/all/guards.rs io/worker/tests/all/bench.rs
  app/packet-loop/src lab/guards/src lab/guards/counts.toml modules/sdk/packet modules/samples/keep-alive modules/apps/net-monitor)
readonly COUNTED=lab/guards/counted

cmd_guards() {
  need_guards; need_build
  build_modules
  # For release, but nothing that is slow to build; the other programs that are looked into are tests.
  cargo build --quiet --release -p netserv-guards
  "$(built release)/netserv-guards" "$@" || fail "hot functions take more instructions than they may" "see the table above"
  hot_digest > "$COUNTED"
  done_line "hot functions take what they may"
}

hot_digest() { git ls-files -z "${HOT[@]}" | xargs -0 sha256sum | sha256sum | cut -c 1-64; }

# Only where hot code is another than when it was last counted.
guards_if_due() {
  if [ "$(hot_digest)" = "$(cat "$COUNTED" 2>/dev/null)" ]; then
    say "guards: hot code is what it was when its instructions were last counted ($COUNTED)"
  else
    cmd_guards
  fi
}

# With --all, tests run over every driver and version of IP, and not over pairs of them.
cmd_ci() {
  # What is built once is not built in increments: half as much again to compile, and twice as much to keep.
  if [ -n "${CI:-}" ]; then
    export CARGO_INCREMENTAL=0
    need_build; restore_dependencies
    lint_text; lint_modules; lint_while_built
  else
    cmd_lint
  fi
  prepare_tests
  [ -z "${CI:-}" ] || keep_dependencies
  run_tests "$@"
  guards_if_due
  report_not_run; report_retried
  done_line "lint, tests and guards passed"
}

cmd_fuzz() {
  # shellcheck disable=SC2012
  local target=${1:?"name a target: $(ls fuzz/fuzz_targets 2>/dev/null | sed 's/\.rs$//' | tr '\n' ' ')"}
  need_build
  cargo +nightly fuzz --version >/dev/null 2>&1 || fail "cargo-fuzz or the nightly toolchain is missing" \
    "rustup toolchain install nightly && cargo install cargo-fuzz"
  local work
  work=$(mktemp -d)
  say "exploring with $target; new inputs go to $work"
  cargo +nightly fuzz run --features libfuzzer "$target" "$work" "fuzz/corpus/$target" -- -max_total_time="${2:-60}"
}
