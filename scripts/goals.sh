# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The commands of ./dev that compare numbers with their goals.

# ignored_tests [--release] [--exact] FILTERS: tests that only these commands run, one after the other, with what they print.
ignored_tests() {
  local profile=() exact=() filter
  if [ "$1" = --release ]; then profile=(--release); shift; fi
  if [ "$1" = --exact ]; then exact=(--exact); shift; fi
  for filter in "$@"; do
    named_tests "$filter" "${profile[@]}" --test all -- --ignored --nocapture --test-threads 1 "${exact[@]}" "$filter"
  done
}

# named_tests NAME ARGS…: runs `cargo test`, and fails also if there is no such test.
named_tests() {
  local name=$1
  shift
  cargo test --workspace "$@" | tee target/named-tests
  grep -q '^test .* ok$' target/named-tests || fail "no test is named $name" "git grep -n 'fn NAME' names it"
}

cmd_truth() {
  need_lab; need_build
  as_root_or_fail "the lab makes network namespaces"
  build_programs
  ignored_tests signaling::stack_truth:: house::scale::
  NETSERV_FULL=1 named_tests house::world:: --test all -- house::world::
  local seeds=(--seeds 10000)
  if [[ " $* " =~ [\ =]*--seeds ]]; then seeds=(); fi
  # Alone, since it links neither the worker nor the daemon.
  cargo build --profile checked -p netserv-lab --bin netserv-lab
  "$(built checked)/netserv-lab" world "${seeds[@]}" "$@"
  done_line "no stack was called whole that was not"
}

cmd_floods() {
  need_lab
  need openssl openssl "shows bad certificates"
  need_build
  as_root_or_fail "the lab makes network namespaces"
  build_programs --release
  ignored_tests --release "${@:-signaling::floods::}"
  done_line "honest requests are answered in time in every flood"
}

# Each beside its goal; they are shown also if none fails.
cmd_compressor() {
  need_lab
  need nginx nginx "serves what is compressed"
  need wrk wrk "asks for it"
  need_build
  as_root_or_fail "the lab makes network namespaces"
  ulimit -n 20000 2>/dev/null || fail "there may be only $(ulimit -n) open files" "ulimit -n 20000"
  build_fast_modules; build_programs --release
  ignored_tests --release web::compressor::
  done_line "pages come faster, and what does not shrink no slower"
}
cmd_servers() {
  need_build
  ulimit -n 20000 2>/dev/null || fail "there may be only $(ulimit -n) open files" "ulimit -n 20000"
  build_fast_modules
  ignored_tests --release --exact \
    server::held::a_thousand_viewers \
    server::udp::two_hundred_thousand_datagrams_come_back_for_a_second_of_processor_time
  done_line "server modules do what they may lean on"
}

cmd_joined() {
  need nginx nginx "is compared with"
  need wrk wrk "asks for small hits"
  need_build
  # Each reader has a connection at both ends.
  ulimit -n 20000 2>/dev/null || fail "there may be only $(ulimit -n) open files" "ulimit -n 20000"
  ignored_tests --release --exact \
    server::joined::five_thousand_readers_are_one_fetch server::joined::small_hits_beside_nginx
  done_line "one fetch for all, and half of what nginx gives or more, also of what is small"
}

cmd_cdn() {
  need nginx nginx "is compared with"
  need varnishd varnish "is compared with"
  need wrk wrk "asks for hits"
  need_build
  # Each client has a connection at both ends.
  ulimit -n 20000 2>/dev/null || fail "there may be only $(ulimit -n) open files" "ulimit -n 20000"
  ignored_tests --release server::active_cdn::
  done_line "one fetch for all, hits as nginx gives them, and the origin sees each thing once"
}

cmd_cache() {
  need_build
  named_tests storage::cache:: --release --lib -- --ignored --nocapture --test-threads 1 storage::cache::
  done_line "what is in a large cache is there at once, and a purge keeps nobody waiting"
}

cmd_video() {
  need_lab; need_video; need_build
  as_root_or_fail "the lab makes network namespaces"
  build_fast_modules; build_programs --release
  ignored_tests --release streams::video::
  done_line "two streams in real time and more on each core"
}

cmd_sip() {
  need_lab; need_voip; need_build
  as_root_or_fail "the lab makes network namespaces"
  ulimit -n 20000 2>/dev/null || fail "there may be only $(ulimit -n) open files" "ulimit -n 20000"
  build_fast_modules; build_programs --release
  ignored_tests --release sip::edge:: sip::sip_torture::
  done_line "an edge answers for its SIP server, and keeps it from being overloaded"
}

cmd_media() {
  need_lab; need_voip
  need rtpengine rtpengine-daemon "relays the same calls"
  need_build
  as_root_or_fail "the lab makes network namespaces"
  ulimit -n 20000 2>/dev/null || fail "there may be only $(ulimit -n) open files" "ulimit -n 20000"
  build_fast_modules; build_programs --release
  ignored_tests --release sip::media_relay:: sip::homes::
  done_line "media take less of the node than by rtpengine"
}

cmd_relocations() {
  need_lab; need_build
  as_root_or_fail "the lab makes network namespaces"
  build_fast_modules; build_programs --release
  ignored_tests --release moves::relocation:: moves::moved_radio::
  done_line "a module moves with what it knows, and is on one node afterwards"
}

cmd_redirects() {
  need_lab; need_build
  as_root_or_fail "the lab makes network namespaces"
  build_fast_modules; build_programs --release
  ignored_tests --release web::cdn::
  done_line "viewers are sent to the node near them soon"
}

cmd_radio() {
  need_lab; need_radio; need_build
  as_root_or_fail "the lab makes network namespaces"
  ulimit -n 20000 2>/dev/null || fail "there may be only $(ulimit -n) open files" "ulimit -n 20000"
  build_fast_modules; build_programs --release
  ignored_tests --release streams::radio::
  done_line "one connection to the radio server for all its listeners"
}
cmd_agent() {
  need_build
  ignored_tests --release agent_numbers::
  done_line "netserv-agent counts what comes, in the memory that it may take"
}

cmd_bench() {
  if [[ " $* " == *" --help "* ]]; then
    cargo run --quiet --bin netserv-lab -- bench --help
    return
  fi
  need_bench; need_build
  as_root_or_fail "the bench makes network namespaces"
  build_fast_modules; build_java; build_programs --release
  "$(built release)/netserv-lab" bench "$@"
  done_line "bench done"
}
