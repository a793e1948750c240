#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# file_copy between two hosts, over UDP and through a router: three network namespaces, veth pairs between.
#
#   tests/e2e/namespaces.sh --file-copy build/apps/file_copy/file_copy [--big MiB] [--only text]
#
# Copies a small and a big file for each of MTU 1500 and 9000, IPv4 and IPv6; then where the path is narrower
# than the hosts' interfaces; then through a router that loses, delays and reorders packets: by tc netem, and
# by a small program behind a tun device, which needs nothing else of the kernel. An ordinary user needs user
# namespaces. Exit code 77: it cannot run.
set -uo pipefail

skip() { echo "namespaces: not run: $1"; exit 77; }
# shellcheck source=tests/e2e/user_namespace.sh
source "$(dirname "$0")/user_namespace.sh"
become_root "$@"

file_copy='' big=101 only=''
while [[ $# -gt 0 ]]; do
  case $1 in
    --file-copy) file_copy=$(realpath "$2"); shift 2 ;;
    --big) big=$2; shift 2 ;;
    --only) only=$2; shift 2 ;;
    *) echo "namespaces: unknown option $1" >&2; exit 2 ;;
  esac
done
[[ -x $file_copy ]] || { echo "namespaces: --file-copy must name the program" >&2; exit 2; }

for tool in ip cmp python3; do command -v "$tool" >/dev/null || skip "there is no $tool"; done

here=$(mktemp -d "${TMPDIR:-/tmp}/softub-ns-XXXXXX")
left=ub-left-$$ router=ub-router-$$ right=ub-right-$$
router_program=''

cleanup() {
  local pid
  trap - EXIT
  # Only what runs inside our own namespaces: all of it is ours.
  for ns in "$left" "$router" "$right"; do
    for pid in $(ip netns pids "$ns" 2>/dev/null); do kill -9 "$pid" 2>/dev/null; done
    ip netns del "$ns" 2>/dev/null
  done
  rm -rf "$here"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

ip netns add "$left" 2>"$here/error" || skip "cannot make a network namespace: $(<"$here/error")"
ip netns add "$router" && ip netns add "$right" || exit 1

in_left() { ip netns exec "$left" "$@"; }
in_router() { ip netns exec "$router" "$@"; }
in_right() { ip netns exec "$right" "$@"; }

# Interface `eth` of each host, `to-left` and `to-right` of the router.
make_network() {
  ip link add eth netns "$left" type veth peer name to-left netns "$router" || return
  ip link add eth netns "$right" type veth peer name to-right netns "$router" || return
  in_router sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 net.ipv4.conf.all.rp_filter=0 \
    net.ipv4.conf.default.rp_filter=0 || return
  local side number ns
  for side in left right; do
    [[ $side == left ]] && number=1 ns=$left || number=2 ns=$right
    in_router ip addr add "10.77.$number.1/24" dev "to-$side" &&
      in_router ip addr add "fd77:$number::1/64" dev "to-$side" nodad &&
      in_router ip link set "to-$side" up &&
      ip -n "$ns" addr add "10.77.$number.2/24" dev eth &&
      ip -n "$ns" addr add "fd77:$number::2/64" dev eth nodad &&
      ip -n "$ns" link set lo up && ip -n "$ns" link set eth up &&
      ip -n "$ns" route add default via "10.77.$number.1" &&
      ip -n "$ns" -6 route add default via "fd77:$number::1" || return
  done
}

# set_mtu HOSTS [ROUTER'S RIGHT SIDE]
set_mtu() {
  ip -n "$left" link set eth mtu "$1" && ip -n "$right" link set eth mtu "$1" &&
    ip -n "$router" link set to-left mtu "$1" && ip -n "$router" link set to-right mtu "${2-$1}"
}

received() { in_right cat "/sys/class/net/eth/statistics/rx_$1"; }

# ---- one copy ----------------------------------------------------------------------------------------------

failed=0
row() {  # name, result, remark
  printf '%-34s %-8s %s\n' "$1" "$2" "$3" | tee -a "$here/table"
  [[ $2 != FAIL ]] || failed=$((failed + 1))
}

wanted() { [[ -z $only || $1 == *"$only"* ]]; }

# copy NAME v4|v6 FILE SECONDS [BYTES OF A PACKET, AT LEAST]
copy() {
  local name=$1 family=$2 source=$3 limit=$4 least=${5-0} from to host port='' receiver start seconds
  wanted "$name" || return 0
  if [[ $family == v4 ]]; then
    from=10.77.1.2 to=10.77.2.2 host=$to
  else
    from=fd77:1::2 to=fd77:2::2 host="[$to]"
  fi
  rm -rf "$here/in" && mkdir "$here/in"
  : >"$here/receiver"  # or the port of the last one might be read before this one starts
  export SOFTUB_PORT_KINDS=udp SOFTUB_LOG_STATS_DIR=$here SOFTUB_PORT_SHM_DIR=$here
  SOFTUB_DEVICE_EIDS=$to in_right timeout -k 1 "$limit" \
    "$file_copy" receive --dir "$here/in" --port 0 --once >"$here/receiver" 2>&1 &
  receiver=$!
  for _ in $(seq 200); do
    port=$(sed -n 's/.*TCP port \([0-9]*\).*/\1/p' "$here/receiver" | head -n 1)
    if [[ -n $port ]] || ! kill -0 "$receiver" 2>/dev/null; then break; fi
    sleep 0.05
  done
  if [[ -z $port ]]; then
    row "$name" FAIL "the receiver never listened: $(tail -n 1 "$here/receiver")"
    kill -9 "$receiver" 2>/dev/null; wait "$receiver" 2>/dev/null
    return 0
  fi
  local bytes packets status
  bytes=$(received bytes) packets=$(received packets)
  start=$(date +%s.%N)
  SOFTUB_DEVICE_EIDS=$from in_left timeout -k 1 "$limit" \
    "$file_copy" send "$source" "$host:$port" --name copy >"$here/sender" 2>&1
  status=$?
  seconds=$(awk "BEGIN { printf \"%.1f\", $(date +%s.%N) - $start }")
  wait "$receiver"
  local received_status=$?
  bytes=$(($(received bytes) - bytes)) packets=$(($(received packets) - packets))
  local mean=$((packets == 0 ? 0 : bytes / packets))
  local remark="$seconds s, $packets packets of $mean bytes on average"
  if [[ $status -ne 0 ]]; then
    [[ $status -eq 124 ]] && remark="$remark; not done after $limit s"
    row "$name" FAIL "sender exit code $status, $remark: $(tail -n 1 "$here/sender" | tr -d '\r')"
  elif [[ $received_status -ne 0 ]]; then
    remark="receiver exit code $received_status, $remark"
    row "$name" FAIL "$remark: $(tail -n 1 "$here/receiver" | tr -d '\r')"
  elif ! cmp "$source" "$here/in/copy" >"$here/cmp" 2>&1; then
    row "$name" FAIL "the copy differs: $(<"$here/cmp"); $remark"
  elif [[ $mean -lt $least ]]; then
    row "$name" FAIL "packets are shorter than $least bytes: $remark"
  else
    row "$name" pass "$remark"
  fi
}

# ---- a router that misbehaves ------------------------------------------------------------------------------

# Every packet between the hosts takes the way through a tun device, where a program holds it for 2 ms, drops
# 2 % and lets 1 % be overtaken.
start_bad_router() {
  [[ -c /dev/net/tun ]] || { echo "there is no /dev/net/tun"; return 1; }
  in_router ip tuntap add mode tun bad && in_router ip link set bad mtu 9000 txqueuelen 10000 up || return 1
  local side
  for side in left right; do
    in_router ip rule add iif "to-$side" lookup 77 &&
      in_router ip -6 rule add iif "to-$side" lookup 77 || return 1
  done
  in_router ip route add default dev bad table 77 &&
    in_router ip -6 route add default dev bad table 77 || return 1
  in_router python3 "$here/bad_router.py" "$1" >"$here/bad_router" 2>&1 &
  router_program=$!
  sleep 0.3
  kill -0 "$router_program" 2>/dev/null || { head -n 1 "$here/bad_router"; return 1; }
}

cat >"$here/bad_router.py" <<'PYTHON'
import fcntl, heapq, os, random, select, struct, sys, time

seed = int(sys.argv[1])
dice = random.Random(seed)
tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
IFF_TUN, IFF_NO_PI, TUNSETIFF = 0x0001, 0x1000, 0x400454CA
fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", b"bad", IFF_TUN | IFF_NO_PI))
held, number = [], 0
while True:
    wait = None if not held else max(0.0, held[0][0] - time.monotonic())
    if select.select([tun], [], [], wait)[0]:
        now = time.monotonic()
        try:
            for _ in range(64):
                packet = os.read(tun, 65536)
                if dice.random() < 0.02:
                    continue
                late = 0.002 if dice.random() < 0.01 else 0.0
                heapq.heappush(held, (now + 0.002 + late, number, packet))
                number += 1
        except BlockingIOError:
            pass
    now = time.monotonic()
    while held and held[0][0] <= now:
        try:
            os.write(tun, heapq.heappop(held)[2])
        except OSError:
            pass  # as lost as the others
PYTHON

# ---- the table ---------------------------------------------------------------------------------------------

make_network || { echo "namespaces: cannot set the network up"; exit 1; }
small=$here/small large=$here/large lossy=$here/lossy
head -c $((3 * 1048576 + 17)) /dev/urandom >"$small"
head -c $((big * 1048576 + 4097)) /dev/urandom >"$large"
head -c $((4 * 1048576 + 1)) /dev/urandom >"$lossy"

for mtu in 1500 9000; do
  set_mtu "$mtu" || exit 1
  # Packets of the big file fill the MTU, or the average would be lower.
  [[ $mtu == 9000 ]] && least=4000 || least=900
  for family in v4 v6; do
    copy "IP$family, MTU $mtu, 3 MiB" "$family" "$small" 30
    copy "IP$family, MTU $mtu, $big MiB" "$family" "$large" 60 "$least"
  done
done

set_mtu 9000 1500 || exit 1
for family in v4 v6; do copy "IP$family, MTU 9000, path 1500, 3 MiB" "$family" "$small" 30; done

netem() { tc -n "$router" qdisc "$1" dev "$2" root netem loss 2% delay 2ms reorder 25% 50% limit 20000; }
if ! wanted netem; then
  :
elif ! command -v tc >/dev/null; then
  row "netem" "not run" "there is no tc"
elif ! netem add to-left 2>"$here/error" || ! netem add to-right 2>"$here/error"; then
  row "netem" "not run" "$(head -n 1 "$here/error") (the kernel has no sch_netem)"
else
  for mtu in 1500 9000; do
    set_mtu "$mtu"
    for family in v4 v6; do copy "netem, IP$family, MTU $mtu, 4 MiB" "$family" "$lossy" 30; done
  done
fi
for side in left right; do tc -n "$router" qdisc del dev "to-$side" root 2>/dev/null; done

seed=$RANDOM
if ! wanted "bad router"; then
  :
elif ! start_bad_router "$seed" >"$here/error" 2>&1; then
  row "bad router" "not run" "$(head -n 1 "$here/error")"
else
  echo "bad router: seed $seed"
  for mtu in 1500 9000; do
    set_mtu "$mtu"
    for family in v4 v6; do copy "bad router, IP$family, MTU $mtu, 4 MiB" "$family" "$lossy" 30; done
  done
fi

echo
passed=$(grep -c ' pass  ' "$here/table") absent=$(grep -c ' not run ' "$here/table")
echo "namespaces: $passed passed, $failed failed, $absent not run"
[[ $failed -eq 0 ]]
