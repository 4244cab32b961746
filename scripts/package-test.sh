#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs, upgrades and purges Debian packages in a clean system, and runs the demo there: ./dev package --test
#
# usage: package-test.sh DIR NEWER: the packages to install with the archive, and packages of a higher version
#
# The system is the smallest one that debootstrap makes of this machine's Debian release, from the mirrors of its apt. It is
# the root of a mount namespace. No service starts in it but in the test of services. With NETSERV_KEEP set, its folder stays.
set -euo pipefail

readonly PACKAGES=(netserv netserv-node netserv-agent netserv-dev)

step() { printf '[package-test] %s\n' "$*" >&2; }
wrong() { printf '[package-test] failed: %s\n' "$*" >&2; exit 1; }

# --- outside --------------------------------------------------------------------------------------------------------

outside() {
  local debs=$1 newer=$2 suite mirror
  suite=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
  mirror=$(sources | awk -v suite="$suite" '$2 == suite { print $1; exit }')
  [ -n "$mirror" ] || wrong "apt has no source for $suite"
  root=$(mktemp -d /var/tmp/netserv-package-XXXXXX)
  chmod 755 "$root"
  trap clear_up EXIT
  step "making a clean $suite in $root"
  debootstrap --variant=minbase "$suite" "$root" "$mirror" > "$root.log" 2>&1 || { tail -n 20 "$root.log" >&2; wrong "debootstrap"; }
  prepare "$suite"
  mkdir "$root/packages" "$root/packages/newer"
  cp "$debs"/*.deb "$debs"/*.tar.gz "$root/packages/"
  cp "$newer"/*.deb "$root/packages/newer/"
  cp "${BASH_SOURCE[0]}" "$root/packages/test.sh"
  enter /packages/test.sh --inside
  boot
  enter /packages/test.sh --demo
  step "passed"
}

# Enters the system and runs a command there. Containers pivot their root, which needs a mount point: in a chroot they could not.
# shellcheck disable=SC2016
readonly ENTER='
  mount --make-rprivate /
  mount --bind "$1" "$1"
  cd "$1"
  mount --rbind /dev dev
  if [ "$2" = cgroup2 ]; then mount -t sysfs sysfs sys; mount -t cgroup2 cgroup2 sys/fs/cgroup; else mount --rbind /sys sys; fi
  mount -t proc proc proc
  mkdir -p outside
  pivot_root . outside
  umount --lazy /outside
  rmdir /outside
  shift 2
  exec env -i HOME=/root LC_ALL=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"
'
enter() { unshare --mount --pid --fork --kill-child bash -euc "$ENTER" bash "$root" as-here bash "$@"; }

# Has systemd start in the system, in a control group of its own, and run the test of the services.
boot() {
  local hierarchy group code=0
  hierarchy=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
  if [ -z "$hierarchy" ]; then step "SKIPPED: services under systemd: there is no cgroup2 here"; return; fi
  step "starting systemd"
  rm "$root/usr/sbin/policy-rc.d"
  cat > "$root/etc/systemd/system/package-test.service" <<'UNIT'
[Unit]
Requires=sysinit.target
After=sysinit.target
SuccessAction=exit-force
FailureAction=exit-force
[Service]
Type=oneshot
Environment=HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive
ExecStart=/bin/bash /packages/test.sh --services
StandardOutput=append:/packages/services.txt
StandardError=inherit
TimeoutStartSec=180
UNIT
  group=$hierarchy/netserv-package-test-$$
  mkdir "$group"
  (
    echo "$BASHPID" > "$group/cgroup.procs"
    exec unshare --mount --pid --uts --ipc --net --cgroup --fork --kill-child bash -euc "$ENTER" bash "$root" cgroup2 \
      env container=package-test /lib/systemd/systemd --unit=package-test.service
  ) > /dev/null 2>&1 < /dev/null || code=$?
  find "$group" -depth -type d -exec rmdir {} +
  cat "$root/packages/services.txt" >&2 || true
  [ "$code" -eq 0 ] || wrong "the services under systemd: $code"
  rm "$root/etc/systemd/system/package-test.service"
  printf '#!/bin/sh\nexit 101\n' > "$root/usr/sbin/policy-rc.d"
  chmod 755 "$root/usr/sbin/policy-rc.d"
}

# Prints the sources of this machine's apt: address, release and component.
# shellcheck disable=SC2016
sources() { apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' | sort -u; }

prepare() {
  local suite=$1
  sources | awk -v suite="$suite" 'index($2, suite) == 1 { print "deb", $1, $2, $3 }' > "$root/etc/apt/sources.list"
  apt-config dump | grep -E '^Acquire::(http|https)::' > "$root/etc/apt/apt.conf.d/90outside" || true
  cp -L /etc/resolv.conf "$root/etc/resolv.conf"
  printf '#!/bin/sh\nexit 101\n' > "$root/usr/sbin/policy-rc.d"
  chmod 755 "$root/usr/sbin/policy-rc.d"
  echo force-unsafe-io > "$root/etc/dpkg/dpkg.cfg.d/quick"
}

clear_up() {
  rm -f "$root.log"
  [ -z "${NETSERV_KEEP:-}" ] || { step "kept: $root"; return 0; }
  ! mountpoint --quiet "$root" || umount --recursive "$root"
  rm -rf --one-file-system "$root"
}

# --- inside ---------------------------------------------------------------------------------------------------------

inside() {
  local before after version
  quietly apt-get update
  step "installing what the packages depend on"
  install_dependencies
  before=$(state)

  version=$(dpkg-deb --field /packages/netserv_*.deb Version)
  step "installing $version"
  quietly apt-get install --yes --no-install-recommends /packages/*.deb
  check_versions "$version"
  check_programs
  check_accounts
  check_node

  version=$(dpkg-deb --field /packages/newer/netserv_*.deb Version)
  step "upgrading to $version"
  configure_and_mark
  quietly apt-get install --yes --no-install-recommends /packages/newer/*.deb
  check_versions "$version"
  check_programs
  check_marks

  step "removing, which keeps configuration and state"
  quietly apt-get remove --yes "${PACKAGES[@]}"
  check_marks
  [ ! -e /usr/bin/netservd ] || wrong "netservd is still there"

  step "purging, which leaves nothing"
  # Of the others nothing is left that dpkg knows. Either may come first; this order is the harder one.
  quietly dpkg --purge netserv-node
  quietly dpkg --purge netserv-agent
  after=$(state)
  [ "$before" = "$after" ] || { diff <(echo "$before") <(echo "$after") >&2 || true; wrong "something is left or missing"; }

}

# The demo, once from packages with all that they recommend, and once from the archive.
demos() {
  SECONDS=0
  quietly apt-get install --yes /packages/*.deb
  step "apt took $SECONDS s, with what the packages recommend"
  demo netserv-lab
  quietly apt-get purge --yes "${PACKAGES[@]}"
  tar --extract --directory /opt --file /packages/*.tar.gz
  step "the same from the archive"
  demo /opt/netserv-*/bin/netserv-lab
}

# Under systemd: services start once they are configured, with the users and folders of their units, and upgrades restart them.
services() {
  local unit main
  step "services that are not configured do not start"
  quietly apt-get install --yes --no-install-recommends /packages/*.deb
  for unit in netservd netserv-agent; do
    expect "$(systemctl is-enabled "$unit") $(systemctl is-active "$unit")" "enabled inactive"
  done

  step "services that are configured do"
  configure_services
  quietly systemctl start netservd
  answers netserv node status
  answers setpriv --reuid nobody --regid netserv --clear-groups netserv node status
  quietly systemctl start netserv-agent
  answers netserv agent status
  main=$(systemctl show --property MainPID --value netserv-agent)
  expect "$(stat --format '%U %G' "/proc/$main")" "netserv-agent netserv"
  expect "$(stat --format '%U %G %a' /run/netserv/access.sock)" "netserv-agent www-data 620"
  quietly systemctl reload netservd netserv-agent
  quietly systemctl stop netservd
  answers netserv agent status
  quietly systemctl start netservd
  answers netserv node status

  step "an upgrade restarts them"
  quietly apt-get install --yes --no-install-recommends /packages/newer/*.deb
  [ "$(systemctl show --property MainPID --value netserv-agent)" != "$main" ] || wrong "the agent was not restarted"
  answers netserv node status
  answers netserv agent status

  step "a purge stops them"
  quietly apt-get purge --yes "${PACKAGES[@]}"
  [ -z "$(pgrep netserv)" ] || wrong "processes are left: $(pgrep --list-name netserv)"
  rm -r /etc/netserv
}

configure_services() {
  netservd config default > /etc/netserv.toml
  netserv key new --out /etc/netserv/janedoe.pem > /dev/null
  chown netserv-agent /etc/netserv/janedoe.pem
  cat > /etc/netserv/agent.toml <<'TOML'
user = "janedoe"
key = "/etc/netserv/janedoe.pem"

[[log]]
name = "access"
socket = "/run/netserv/access.sock"
group = "www-data"
pattern = "nginx: {client} {method}"

[[rule]]
name = "edge"
log = "access"
count = 100
window-s = 10
region-v4 = 24
region-v6 = 56
module = "example.org/echo@1.0.0"
url = "https://www.example.org/echo.nsm"
digest = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
filters = ["udp dst 192.0.2.1/32 port 44444"]
lease-s = 60
idle-s = 300
TOML
}

# Waits until a command succeeds, 10 s at most.
answers() {
  local _
  for _ in $(seq 100); do "$@" > /packages/answer.txt 2>&1 && return 0; sleep 0.1; done
  cat /packages/answer.txt >&2
  systemctl status --no-pager netservd netserv-agent >&2 || true
  wrong "$*"
}

# Runs a command and shows what it says only if it fails.
quietly() {
  local log=/packages/log.txt
  "$@" > "$log" 2>&1 || { tail -n 40 "$log" >&2; wrong "$*"; }
  # apt goes on where a maintainer script complains.
  ! grep -E '^(insserv|groupdel|userdel|rm|rmdir): ' "$log" >&2 || wrong "$*"
}

install_dependencies() {
  local names
  mapfile -t names < <(apt-get install --simulate --no-install-recommends /packages/*.deb |
    sed -n 's/^Inst \([^ ]*\).*/\1/p' | grep -v '^netserv')
  quietly apt-get install --yes --no-install-recommends "${names[@]}"
}

# Prints what packages may leave behind: files, users, groups, and what dpkg knows of ours.
state() {
  find / -xdev \( -path /packages -o -path /tmp -o -path /var/cache -o -path /var/log -o -path /var/lib/apt -o -path /var/lib/dpkg \) \
    -prune -o -print | sort
  sort /etc/passwd
  sort /etc/group
  dpkg-query --show --showformat '${Package} ${db:Status-Status}\n' 'netserv*' 2>/dev/null || true
}

check_versions() {
  local package have
  for package in "${PACKAGES[@]}"; do
    have=$(dpkg-query --show --showformat '${Version} ${db:Status-Status}' "$package")
    [ "$have" = "$1 installed" ] || wrong "$package is $have"
  done
}

check_programs() {
  netserv --version | grep -q '^netserv [0-9]' || wrong "netserv --version"
  netserv key new --out /packages/key.pem > /dev/null
  rm /packages/key.pem
  netservd config default > /packages/default.toml
  netservd config check /packages/default.toml > /dev/null
  netservd doctor >&2 || wrong "netservd doctor"
  netserv-agent --help > /dev/null
  netserv-lab --version > /dev/null
  bash -n /usr/share/bash-completion/completions/netserv
  local page
  for page in man1/netserv.1 man1/netserv-module-new.1 man1/netservd.1 man8/netserv-agent.8 man1/netserv-lab.1; do
    [ -e "/usr/share/man/$page.gz" ] || wrong "there is no manual page $page"
  done
}

check_accounts() {
  getent group netserv > /dev/null || wrong "there is no group netserv"
  getent passwd netserv-agent > /dev/null || wrong "there is no user netserv-agent"
  expect "$(stat --format '%a %U %G' /run/netserv)" "1775 root netserv"
  expect "$(stat --format '%a %U %G' /var/lib/netserv)" "700 root netserv"
  expect "$(stat --format '%a %U %G' /var/lib/netserv-agent)" "700 netserv-agent netserv"
  expect "$(readlink /etc/systemd/system/multi-user.target.wants/netservd.service)" /lib/systemd/system/netservd.service
  expect "$(readlink /etc/systemd/system/multi-user.target.wants/netserv-agent.service)" /lib/systemd/system/netserv-agent.service
}

expect() { [ "$1" = "$2" ] || wrong "\`$1\` in place of \`$2\`"; }

# Runs a node as its unit does, but without systemd, in a network of its own.
check_node() {
  netservd config default > /etc/netserv.toml
  # shellcheck disable=SC2016
  unshare --net setpriv --regid netserv --clear-groups bash -euc '
    netservd run --config /etc/netserv.toml > /packages/node.log 2>&1 &
    for _ in $(seq 100); do netserv node status > /packages/status.txt 2>&1 && break; sleep 0.1; done
    kill "$!"
    wait "$!" || true
  '
  grep -q version /packages/status.txt || { cat /packages/node.log /packages/status.txt >&2; wrong "the node does not answer"; }
}

configure_and_mark() {
  local file
  for file in /etc/netserv.toml /etc/netserv/agent.toml /var/lib/netserv/mark /var/lib/netserv-agent/mark; do
    echo "# mark" >> "$file"
  done
}

check_marks() {
  local file
  for file in /etc/netserv.toml /etc/netserv/agent.toml /var/lib/netserv/mark /var/lib/netserv-agent/mark; do
    grep -q '^# mark' "$file" || wrong "$file is gone, or another one"
  done
}

# demo PROGRAM
demo() {
  SECONDS=0
  "$1" demo > /packages/demo.txt 2>&1 || { tail -n 40 /packages/demo.txt >&2; wrong "the demo"; }
  step "the demo took $SECONDS s"
  sed -n '/── Figures/,$p' /packages/demo.txt >&2
}

case "${1:-}" in
  --inside) inside ;;
  --services) services ;;
  --demo) demos ;;
  *) outside "${1:?"name the folder of the packages"}" "${2:?"name the folder of the newer packages"}" ;;
esac
