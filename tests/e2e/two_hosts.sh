#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# docs/two-hosts.md as a new user follows it: two hosts and a router between them, as network namespaces. First all
# is well; then one thing after the other is broken, and the doctor must name it.
#
#   tests/e2e/two_hosts.sh --build build [--verbose]
#
# An ordinary user needs user namespaces. Exit code 77: it cannot run. What needs nft or iptables is left out where
# there is neither.
set -uo pipefail

skip() { echo "two_hosts: not run: $1"; exit 77; }
# shellcheck source=tests/e2e/user_namespace.sh
source "$(dirname "$0")/user_namespace.sh"
become_root "$@"

build='' verbose=''
while [[ $# -gt 0 ]]; do
  case $1 in
    --build) build=$(realpath "$2"); shift 2 ;;
    --verbose) verbose=1; shift ;;
    *) echo "two_hosts: unknown option $1" >&2; exit 2 ;;
  esac
done
for tool in admin/urma_admin perf/urma_perf pingpong/urma_pingpong; do
  [[ -x $build/tools/$tool ]] || { echo "two_hosts: --build must name a build directory: no tools/$tool" >&2; exit 2; }
  PATH=$build/tools/${tool%/*}:$PATH
done

for tool in ip python3; do command -v "$tool" >/dev/null || skip "there is no $tool"; done

here=$(mktemp -d "${TMPDIR:-/tmp}/softub-two-XXXXXX")
left=ub-two-left-$$ router=ub-two-router-$$ right=ub-two-right-$$

end_all_in() {
  local pid
  # Only what runs inside our own namespace: all of it is ours.
  for pid in $(ip netns pids "$1" 2>/dev/null); do kill -9 "$pid" 2>/dev/null; done
}
cleanup() {
  local ns
  trap - EXIT
  for ns in "$left" "$router" "$right"; do end_all_in "$ns"; ip netns del "$ns" 2>/dev/null; done
  rm -rf "$here"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

ip netns add "$left" 2>"$here/error" || skip "cannot make a network namespace: $(<"$here/error")"
ip netns add "$router" && ip netns add "$right" || exit 1

# Nothing of whoever runs this: no configuration, no rendezvous directory.
for variable in "${!SOFTUB_@}"; do unset "$variable"; done
export XDG_CONFIG_HOME=$here/config XDG_RUNTIME_DIR=$here/run
mkdir -m 700 "$here/config" "$here/run"

on_left() { ip netns exec "$left" "$@"; }
on_router() { ip netns exec "$router" "$@"; }
on_right() { ip netns exec "$right" "$@"; }

make_network() {
  ip link add eth0 netns "$left" type veth peer name to-left netns "$router" &&
    ip link add eth0 netns "$right" type veth peer name to-right netns "$router" &&
    on_router sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 || return
  local side number ns
  for side in left right; do
    [[ $side == left ]] && number=1 ns=$left || number=2 ns=$right
    on_router ip addr add "10.78.$number.1/24" dev "to-$side" &&
      on_router ip addr add "fd78:$number::1/64" dev "to-$side" nodad &&
      on_router ip link set "to-$side" up &&
      ip -n "$ns" addr add "10.78.$number.2/24" dev eth0 &&
      ip -n "$ns" addr add "fd78:$number::2/64" dev eth0 nodad &&
      ip -n "$ns" link set lo up && ip -n "$ns" link set eth0 up &&
      ip -n "$ns" route add default via "10.78.$number.1" &&
      ip -n "$ns" -6 route add default via "fd78:$number::1" || return
  done
  for ns in "$left" "$right"; do  # the kernel takes up to a second to say so
    for _ in $(seq 50); do ip -n "$ns" link show eth0 | grep -q "state UP" && break; sleep 0.1; done
  done
}

# mtu LEFT ROUTER'S-LEFT ROUTER'S-RIGHT RIGHT; what the kernels learned of the path is forgotten.
mtu() {
  on_left ip link set eth0 mtu "$1" && on_router ip link set to-left mtu "$2" &&
    on_router ip link set to-right mtu "$3" && on_right ip link set eth0 mtu "$4" || exit 1
  for ns in "$left" "$right"; do ip -n "$ns" route flush cache; ip -n "$ns" -6 route flush cache; done
}

# ---- checks ------------------------------------------------------------------------------------------------

passed=0 failed=0 absent=0
note() { printf '%-6s %s\n' "$1" "$2"; }
good() { passed=$((passed + 1)); note pass "$1"; }
bad() {
  failed=$((failed + 1))
  note FAIL "$1"
  sed 's/^/    /' "$here/output"
}

# doctor NAME EXIT-CODE LINE COMMAND...: the output has that line, a regular expression, and the exit code is that.
doctor() {
  local name=$1 code=$2 line=$3 status
  shift 3
  "$@" >"$here/output" 2>&1
  status=$?
  [[ -z $verbose ]] || sed 's/^/    /' "$here/output"
  if [[ $status -ne $code ]]; then
    bad "$name: exit code $status instead of $code"
  elif ! grep -Eq -- "$line" "$here/output"; then
    bad "$name: it does not say \"$line\""
  else
    good "$name"
  fi
}

# The command that the doctor proposed for an item, as a user would copy it.
advice_for() { grep -A 1 -E "^[a-z]+ +$1 " "$here/output" | sed -n 's/^ *-> as root: //p'; }

wait_for() {  # FILE TEXT
  for _ in $(seq 100); do grep -q "$2" "$1" 2>/dev/null && return; sleep 0.05; done
  echo "two_hosts: never seen: $2"; cat "$1"; return 1
}

listen_on() {  # NAMESPACE
  : >"$here/listener"
  ip netns exec "$1" urma_admin doctor --listen >"$here/listener" 2>&1 &
  disown  # it will be killed, and the shell need not say so
  wait_for "$here/listener" "answering on"
}

works() {  # NAME SERVER'S-ADDRESS TOOL ARGUMENTS...: two programs, the server on the right
  local name=$1 address=$2 server
  shift 2
  : >"$here/server"
  on_right timeout -k 1 30 "$@" >"$here/server" 2>&1 &
  server=$!
  wait_for "$here/server" "TCP port" || { bad "$name"; return; }
  if on_left timeout -k 1 30 "$@" "$address" >"$here/output" 2>&1 && wait "$server"; then
    good "$name"
  else
    cat "$here/server" >>"$here/output"
    bad "$name"
  fi
}

# ---- all is well -------------------------------------------------------------------------------------------

make_network || { echo "two_hosts: cannot set the network up"; exit 1; }

doctor "doctor on the left" 0 '^ok +EID 10\.78\.1\.2 +on eth0, MTU 1500: 1024 bytes' on_left urma_admin doctor
doctor "doctor on the right" 0 '^ok +UDP port 4792 +free on 10\.78\.2\.2' on_right urma_admin doctor
doctor "a peer without a doctor" 1 'no doctor listens' on_left urma_admin doctor --peer 10.78.2.2
listen_on "$right" || exit 1
doctor "left to right" 0 '^ok +UDP 4792 of the peer +open' on_left urma_admin doctor --peer 10.78.2.2
doctor "the route and its router" 0 '^ok +route +from 10\.78\.1\.2 on eth0, through 10\.78\.1\.1' \
  on_left urma_admin doctor --peer 10.78.2.2
doctor "no translation" 0 '^ok +NAT +none: the peer sees 10\.78\.1\.2' on_left urma_admin doctor --peer 10.78.2.2
doctor "the path's MTU" 0 '^ok +path MTU +IP packets of 1500 bytes pass' on_left urma_admin doctor --peer 10.78.2.2
doctor "IPv6, one EID" 1 'no IPv6 EID; add one to device.eids' on_left urma_admin doctor --peer fd78:2::2
export SOFTUB_DEVICE_EIDS=fd78:1::2
doctor "IPv6, its EID" 0 '^ok +UDP 4792 of the peer +open' on_left urma_admin doctor --peer fd78:2::2
unset SOFTUB_DEVICE_EIDS
doctor "JSON" 0 '"problem": 0' on_left urma_admin doctor --json --peer 10.78.2.2
end_all_in "$right"
listen_on "$left" || exit 1
doctor "right to left" 0 '^ok +UDP 4792 of the peer +open' on_right urma_admin doctor --peer 10.78.1.2
end_all_in "$left"

works "urma_pingpong" 10.78.2.2 urma_pingpong -n 1000
works "urma_perf" 10.78.2.2 urma_perf write_lat -n 1000
on_right urma_perf read_lat >"$here/server" 2>&1 &
disown
wait_for "$here/server" "TCP port"
doctor "a port that a program of ours has" 0 '^ok +UDP port 4792 +taken on 10\.78\.2\.2 by pid [0-9]+, urma_perf' \
  on_right urma_admin doctor
listen_on "$right"
doctor "a peer whose port is in use" 0 '^skipped +UDP 4792 of the peer +not tried: pid [0-9]+, urma_perf' \
  on_left urma_admin doctor --peer 10.78.2.2
end_all_in "$right"

# ---- this host is at fault ---------------------------------------------------------------------------------

# shellcheck disable=SC2016
on_right python3 -c 'import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("", 4792)); print("TCP port", flush=True); time.sleep(60)
' >"$here/server" 2>&1 &
disown
wait_for "$here/server" "TCP port"
doctor "a port that a stranger has" 0 '^warning +UDP port 4792 +taken on 10\.78\.2\.2 by pid [0-9]+, python3' \
  on_right urma_admin doctor
end_all_in "$right"
export SOFTUB_PORT_MTU=8192
doctor "packets too long for the interface" 1 '^problem +EID 10\.78\.1\.2 .*does not fit' on_left urma_admin doctor
unset SOFTUB_PORT_MTU
mkdir -p "$XDG_CONFIG_HOME/softub"
printf '[port]\nmtuu = 1024\n' >"$XDG_CONFIG_HOME/softub/softub.toml"
doctor "a typing error in the configuration" 1 '^problem +configuration .*softub.toml:2:1: unknown key' \
  on_left urma_admin doctor
rm "$XDG_CONFIG_HOME/softub/softub.toml"
export SOFTUB_PORT_SHM_DIR=$here/open
mkdir -m 777 "$here/open" && chmod 777 "$here/open"
doctor "a rendezvous directory for everybody" 1 '^problem +rendezvous .*mode 0777' on_left urma_admin doctor
unset SOFTUB_PORT_SHM_DIR
on_left ip link set lo down
doctor "no loopback interface" 1 '^problem +UDP to itself' on_left urma_admin doctor
on_left ip link set lo up

# ---- the network is at fault -------------------------------------------------------------------------------

listen_on "$right" || exit 1
on_left ip route del default
doctor "no route" 1 '^problem +route +to 10\.78\.2\.2' on_left urma_admin doctor --peer 10.78.2.2
on_left ip route add default via 10.78.1.1

mtu 9000 9000 1400 1400
doctor "a narrow path that says so" 0 '^ok +path MTU .*1400 bytes pass.*kernel was told 1400; 1024 bytes' \
  on_left urma_admin doctor --peer 10.78.2.2
mtu 9000 9000 1500 9000
doctor "jumbo frames, and a router without" 0 '^warning +path MTU .*kernel was told 1500.*agrees on 1024' \
  on_left urma_admin doctor --peer 10.78.2.2
mtu 9000 1500 9000 9000
doctor "a black hole" 0 '^warning +path MTU +IP packets of 1500 bytes pass, those of 2211 do not.*MTU black hole' \
  on_left urma_admin doctor --peer 10.78.2.2
mtu 1500 1500 1000 1500
doctor "a path that is too narrow" 1 '^problem +path MTU .*SoftUB needs 1148' on_left urma_admin doctor --peer 10.78.2.2
end_all_in "$right"
mtu 9000 1500 9000 9000
works "urma_perf across the black hole" 10.78.2.2 urma_perf write_bw -s 65536 -n 200
mtu 1500 1500 1500 1500
listen_on "$right" || exit 1

# A firewall in the middle, which needs no nft: rules of routing drop.
in_the_middle() {  # NAME LINE SELECTOR...
  local name=$1 line=$2
  shift 2
  if ! on_router ip rule add "$@" 2>"$here/error"; then
    absent=$((absent + 1)); note absent "$name: $(<"$here/error")"; return
  fi
  doctor "$name" 1 "$line" on_left urma_admin doctor --peer 10.78.2.2
  on_router ip rule del "$@"
}
in_the_middle "UDP 4792 dropped in the middle" '^problem +UDP 4792 of the peer +blocked, though UDP 4793 passes' \
  ipproto udp dport 4792 blackhole
in_the_middle "UDP 4792 refused in the middle" 'blocked, though.*10\.78\.1\.1 says: prohibited by a firewall' \
  ipproto udp dport 4792 prohibit
in_the_middle "all UDP dropped in the middle" '^problem +peer answers +UDP is blocked: TCP 4793 answers' \
  ipproto udp blackhole
in_the_middle "everything dropped in the middle" 'nothing comes back' to 10.78.2.2 blackhole

# A firewall on the host itself: named there, and mended with the very command that the doctor proposes.
on_the_host() {  # TOOL
  doctor "UDP 4792 dropped by $1, seen from outside" 1 '^problem +UDP 4792 of the peer +blocked' \
    on_left urma_admin doctor --peer 10.78.2.2
  doctor "UDP 4792 dropped by $1, seen on the host" 1 '^problem +firewall .*stops UDP 4792' on_right urma_admin doctor
  local command
  command=$(advice_for firewall)
  read -ra words <<<"$command"
  on_right "${words[@]}" || bad "\"$command\" fails"
  doctor "UDP 4792, after: $command" 0 '^ok +UDP 4792 of the peer +open' on_left urma_admin doctor --peer 10.78.2.2
}
if command -v nft >/dev/null && on_right nft -f - 2>"$here/error" <<'RULES'
table inet filter {
  chain input { type filter hook input priority 0; udp dport 4792 drop; }
}
RULES
then
  on_the_host nft
  on_right nft flush ruleset
  on_right nft -f - <<'RULES'
table inet filter {
  chain input { type filter hook input priority 0; policy drop; ct state established accept; tcp dport { 22, 4793 } accept; }
}
RULES
  doctor "a host that drops by default" 0 '^warning +firewall .*policy drop' on_right urma_admin doctor
  command=$(advice_for firewall)
  read -ra words <<<"$command"
  on_right "${words[@]}"
  doctor "UDP 4792, after: $command" 0 '^ok +UDP 4792 of the peer +open' on_left urma_admin doctor --peer 10.78.2.2
  on_right nft flush ruleset
  on_router nft -f - <<'RULES'
table ip nat {
  chain after { type nat hook postrouting priority 100; oifname "to-right" masquerade; }
}
RULES
  doctor "NAT" 1 '^problem +NAT +sent from 10\.78\.1\.2:[0-9]+, and seen by the peer as 10\.78\.2\.1' \
    on_left urma_admin doctor --peer 10.78.2.2
  on_router nft flush ruleset
else
  absent=$((absent + 1)); note absent "rules of nft: $(head -n 1 "$here/error" 2>/dev/null)"
fi
if command -v iptables >/dev/null && on_right iptables -A INPUT -p udp --dport 4792 -j DROP 2>"$here/error"; then
  on_the_host iptables
else
  absent=$((absent + 1)); note absent "rules of iptables: $(head -n 1 "$here/error" 2>/dev/null)"
fi

echo
echo "two_hosts: $passed passed, $failed failed, $absent not run"
[[ $failed -eq 0 ]]
