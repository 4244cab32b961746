# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# ./dev package: what users install, as an archive and as Debian packages. ./dev sources this file.
#
# The files are staged once, as they lie below /usr. Programs are in lib/netserv, because netservd and netserv look for workers
# and jars beside themselves; bin has links to those that users call. share/netserv is laid out as the source tree is, with
# modules where a build leaves them, so that an installed netserv-lab and the [build] of each netserv.toml find them.

readonly PACKAGED_COMMANDS=(netserv netservd netserv-agent netserv-lab)
readonly PACKAGED_WORKERS=(netserv-worker netserv-jvm)
readonly PACKAGED_SOURCES=(README.md ARCHITECTURE.md CHANGELOG.md CONTRIBUTING.md SPECIFICATION.md LICENSE docs wit modules java
  lab/voip dist/examples dist/wireshark ':!docs/man' ':!java/samples/bad/broken')
# Modules that only tests use: their code is not packaged.
readonly UNPACKAGED_MODULES=(modules/fixtures/toolbox java/samples/toolbox java/samples/bad)

need_package() {
  need dh debhelper "makes Debian packages"
  need dpkg-buildpackage dpkg-dev "makes Debian packages"
  need lintian lintian "checks Debian packages"
}

# package [--stage | --staged] [--version VERSION] [--test]
#
# --stage makes no packages: target/package/usr/bin has optimised programs then. --staged packs what was staged before. --test
# installs the packages in a clean system.
cmd_package() {
  local version='' stage='' test='' out
  while [ $# -gt 0 ]; do
    case "$1" in
      --version) version=${2:?"--version needs a version"}; shift ;;
      --stage) stage=only ;;
      --staged) stage=reuse ;;
      --test) test=yes ;;
      *) fail "./dev package has no option \`$1\`" "./dev package [--stage | --staged] [--version VERSION] [--test]" ;;
    esac
    shift
  done
  version=${version:-$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)}
  out=${CARGO_TARGET_DIR:-target}/package
  [ "$stage" = only ] || need_package
  if [ -n "$test" ]; then
    need debootstrap debootstrap "makes the clean system for the test"
    as_root_or_fail "the test installs packages in a system of its own"
  fi
  if [ "$stage" = reuse ]; then
    install_missing
    [ -d "$out/usr" ] || fail "nothing is staged in $out/usr" "./dev package, without --staged"
  else
    need_build; build_fast_modules; build_java; build_programs --release
    say "staging programs and files"
    stage_package "$out/usr"
  fi
  [ "$stage" != only ] || { done_line "programs are in $out/usr/bin"; return; }
  rm -f "$out"/*.deb "$out"/*.tar.gz "$out"/*.changes "$out"/*.buildinfo
  make_archive "$out/usr" "$version" "$out"
  make_debs "$out/usr" "$version" "$out"
  check_debs "$out"
  if [ -n "$test" ]; then
    rm -rf "$out/upgrade"
    make_debs "$out/usr" "$version+upgrade1" "$out/upgrade"
    scripts/package-test.sh "$out" "$out/upgrade" || fail "the test of the packages" "see above"
  fi
  done_line "packages are in $out"
  ls -sh1 "$out"/*.deb "$out"/*.tar.gz >&2
}

# --- what is packaged -----------------------------------------------------------------------------------------------

# stage_package DIR: fills DIR with what is below /usr, programs stripped.
stage_package() {
  local usr=$1 share=$1/share/netserv name
  rm -rf "$usr"
  mkdir -p "$usr/bin" "$usr/lib/netserv" "$share"
  for name in "${PACKAGED_COMMANDS[@]}" "${PACKAGED_WORKERS[@]}"; do
    strip -o "$usr/lib/netserv/$name" "$(built release)/$name"
  done
  for name in "${PACKAGED_COMMANDS[@]}"; do ln -s "../lib/netserv/$name" "$usr/bin/$name"; done
  git ls-files -z -- "${PACKAGED_SOURCES[@]}" | tar --null --files-from - --create | tar --extract --directory "$share"
  find "$share" -name .gitignore -delete
  stage_modules "$share"
  cp -r java/dist "$share/java/dist"
  ln -s ../../share/netserv/java/dist "$usr/lib/netserv/netserv-java"
  stage_manual "$usr"
  stage_services "$usr"
  stage_notices "$usr/share/doc"
}

# stage_modules SHARE: copies what was built of each sample module, as it is shipped, to where its netserv.toml names it.
stage_modules() {
  local share=$1 manifest folder file built
  while IFS= read -r manifest; do
    folder=${manifest%/netserv.toml}
    [[ " ${UNPACKAGED_MODULES[*]} " != *" $folder "* ]] || continue
    while IFS= read -r file; do
      built=$folder/${file/\/release\//\/dist\/}
      [ -e "$built" ] || fail "$built is not built" "./dev package, without --staged"
      install -D -m 644 "$built" "$share/$folder/$file"
    done < <(sed -n -E 's/^(wasm|component|bundle) = "(.*)"$/\2/p' "$manifest")
  done < <(cd "$share" && find modules java/samples -name netserv.toml | sort)
}

# stage_manual USR: manual pages and completions, which the programs write themselves.
stage_manual() {
  local usr=$1 netserv=$1/lib/netserv/netserv
  "$netserv" man --dir "$usr/share/man/man1" >/dev/null
  "$usr/lib/netserv/netserv-lab" man "$usr/share/man/man1"
  install -D -m 644 -t "$usr/share/man/man1" docs/man/netservd.1
  install -D -m 644 -t "$usr/share/man/man8" docs/man/netserv-agent.8
  mkdir -p "$usr"/share/{bash-completion/completions,zsh/vendor-completions,fish/vendor_completions.d}
  "$netserv" completions bash > "$usr/share/bash-completion/completions/netserv"
  "$netserv" completions zsh > "$usr/share/zsh/vendor-completions/_netserv"
  "$netserv" completions fish > "$usr/share/fish/vendor_completions.d/netserv.fish"
}

# stage_services USR: for the archive. debhelper takes these files from dist/ by itself.
stage_services() {
  install -D -m 644 -t "$1/lib/systemd/system" dist/*.service
  install -D -m 644 -t "$1/lib/sysusers.d" dist/sysusers.d/*.conf
  install -D -m 644 -t "$1/lib/tmpfiles.d" dist/tmpfiles.d/*.conf
}

# stage_notices DOC: licenses and notices of the libraries that each package's programs are linked with.
stage_notices() {
  local doc=$1
  mkdir -p "$doc"/netserv{,-node,-agent,-dev}
  notices Cargo.toml --package netserv > "$doc/netserv/third-party.txt"
  notices Cargo.toml --package netservd --package netserv-worker > "$doc/netserv-node/third-party.txt"
  notices Cargo.toml --package netserv-agent > "$doc/netserv-agent/third-party.txt"
  { notices Cargo.toml --package netserv-lab; notices modules/Cargo.toml --workspace; } > "$doc/netserv-dev/third-party.txt"
}

# notices MANIFEST ARGS…: lists the libraries of others with their licenses, and each text of a license once.
notices() {
  local manifest=$1 library registry=${CARGO_HOME:-$HOME/.cargo}/registry/src folders=()
  shift
  echo "Libraries that are linked, with their licenses:"
  echo
  while IFS=';' read -r library license; do
    library=${library%% (*}
    library=${library/ v/-}
    compgen -G "$registry/*/$library" > /dev/null || continue
    folders+=("$registry"/*/"$library")
    echo "  $library: $license"
  done < <(cargo tree --locked --manifest-path "$manifest" --edges normal --prefix none --format '{p};{l}' "$@" |
    sed 's, (\*)$,,' | sort -u)
  find "${folders[@]}" -maxdepth 2 -type f -size -64k -regextype posix-extended \
    -iregex '.*/(licen[cs]e|copying|copyright|notice|unlicense)[^/]*' -not -iregex '.*\.(rs|sh|py)' -print0 |
    sort -z | xargs -0 sha256sum | sort -s -k 1,1 | awk -v start="$registry/" '
      $1 != last { last = $1; texts[++count] = substr($0, 67) }
      { path = substr($0, 67 + length(start)); sub(/^[^\/]*\//, "", path); sub(/\/.*/, "", path)
        if (!((count, path) in seen)) { seen[count, path] = 1; users[count] = users[count] " " path } }
      END { for (i = 1; i <= count; i++) {
              printf "\n%s\n", "--------------------------------------------------------------------------------"
              print "Of" users[i] ":\n"
              while ((getline line < texts[i]) > 0) { sub(/\r$/, "", line); print line }
              close(texts[i]) } }'
}

# --- archive and packages -------------------------------------------------------------------------------------------

# make_archive USR VERSION OUT: the same bytes for the same staged files.
make_archive() {
  local usr=$1 version=$2 out=$3 name
  name=netserv-$version-$(uname -m)-linux
  say "making $name.tar.gz"
  tar --create --directory "$usr" --transform "flags=r;s#^\.#netserv-$version#" --sort=name --owner=0 --group=0 --numeric-owner \
    --mtime="@$(git log -1 --format=%ct)" --mode=go=rX,u+rw . | gzip --no-name > "$out/$name.tar.gz"
}

# make_debs USR VERSION OUT: has debhelper make the packages of dist/debian.
make_debs() {
  local usr=$1 version=$2 out=$3 build=$3/build/netserv-$2 debian log
  say "making Debian packages of version $version"
  rm -rf "$out/build"
  debian=$build/debian
  mkdir -p "$build"
  cp -r dist/debian "$debian"
  sed -i "s#@MAINTAINER@#$(maintainer)#" "$debian/control"
  printf 'netserv (%s) unstable; urgency=medium\n\n  * CHANGELOG.md of netserv-dev has what is new.\n\n -- %s  %s\n' \
    "$version" "$(maintainer)" "$(git log -1 --format=%cD)" > "$debian/changelog"
  cp dist/netservd.service "$debian/netserv-node.netservd.service"
  cp dist/netserv-agent.service "$debian/netserv-agent.service"
  local package
  for package in netserv-node netserv-agent; do
    cp "dist/sysusers.d/$package.conf" "$debian/$package.sysusers"
    cp "dist/tmpfiles.d/$package.conf" "$debian/$package.tmpfiles"
  done
  for package in netserv netserv-node netserv-agent netserv-dev; do
    echo "debian/tmp/usr/share/doc/$package/third-party.txt" > "$debian/$package.docs"
  done
  mkdir "$build/staged"
  cp -al "$usr" "$build/staged/usr"
  rm -r "$build/staged/usr/lib"/{systemd,sysusers.d,tmpfiles.d}
  log=$out/build/log.txt
  (cd "$build" && SOURCE_DATE_EPOCH=$(git -C "$OLDPWD" log -1 --format=%ct) \
    dpkg-buildpackage --build=binary --no-pre-clean --no-check-builddeps --no-sign) > "$log" 2>&1 ||
    { tail -n 30 "$log" >&2; fail "the Debian packages" "see $log"; }
  mv "$out/build"/*.{deb,changes,buildinfo} "$out/"
  rm -rf "$build"
}

# Prints who is named as the packages' maintainer: DEBFULLNAME and DEBEMAIL, or else the last commit's author.
maintainer() {
  echo "${DEBFULLNAME:-$(git log -1 --format=%an)} <${DEBEMAIL:-$(git log -1 --format=%ae)}>"
}

check_debs() {
  say "checking with lintian"
  local root=()
  [ "$(id -u)" -ne 0 ] || root=(--allow-root)
  lintian "${root[@]}" --fail-on error,warning --tag-display-limit 0 "$1"/*.changes >&2 ||
    fail "lintian finds faults" "mend them; override only what cannot be mended, with the reason"
}
