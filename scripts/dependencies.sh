# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What others wrote, as one run of CI compiled it for the next on the same machine. A machine without it compiles anew.

# The folder for what is compiled from these versions of all dependencies, by this compiler, with these profiles.
dependencies() {
  local digest
  digest=$({ rustc -vV; cat Cargo.lock Cargo.toml modules/Cargo.lock modules/Cargo.toml .cargo/config.toml modules/.cargo/config.toml \
    scripts/dependencies.sh; } | sha256sum)
  echo "$(cache)/dependencies-${digest:0:16}"
}

# Only where nothing was compiled yet.
restore_dependencies() {
  local from
  from=$(dependencies)
  [ -d "$from" ] && [ ! -e target/debug ] && [ ! -e modules/target ] || return 0
  say "taking compiled dependencies from $from"
  cp -a "$from/." .
}

# Keeps what belongs to no crate of ours, and only the newest such folder.
keep_dependencies() {
  local into part
  into=$(dependencies)
  [ ! -d "$into" ] || return 0
  rm -rf "$(cache)"/dependencies-*
  part=$into.part
  mkdir -p "$part"
  local folders=()
  mapfile -t folders < <(find target modules/target -type d \( -name .fingerprint -o -name build -o -name deps \) \
    -path '*/[dr]e[bl]*/*' -prune -print 2>/dev/null)
  [ ${#folders[@]} -gt 0 ] || return 0
  own_crates | tar -cf - --exclude-from=- "${folders[@]}" | tar -C "$part" -xf -
  mv "$part" "$into"
  say "compiled dependencies are kept in $into ($(du -sm "$into" | cut -f1) MB)"
}

# Patterns of the files that come of our own crates.
own_crates() {
  local manifest hash
  hash=$(printf '[0-9a-f]%.0s' {1..16})
  for manifest in Cargo.toml modules/Cargo.toml; do
    cargo metadata --no-deps --format-version 1 --manifest-path "$manifest"
  done | grep -o '"name":"[^"]*","src_path"\|"name":"[^"]*","version"' | cut -d '"' -f 4 | grep -v '^build-script' | sort -u |
    while read -r name; do
      # Cargo's hash in full: `signal-` and 16 characters would be `signal-hook-registry` of others, too.
      printf '%s-%s\n%s-%s.*\n' "${name//-/_}" "$hash" "${name//-/_}" "$hash"
      printf 'lib%s-%s.*\n%s-%s\n' "${name//-/_}" "$hash" "$name" "$hash"
    done
}
