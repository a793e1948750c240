#!/bin/busybox sh
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash
# The first process of the guest: file systems, modules, addresses, the RoCE NIC rxe0 on the first network card, and
# somebody who runs commands on each virtio port. What it is told stands in the kernel's command line, as
# guest.KEY=VALUE: roce and tcp are MAC,ADDRESS/BITS of the two cards, mtu is that of the first.
/bin/busybox --install -s /bin
export PATH=/usr/bin:/bin:/sbin HOME=/root
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mkdir -p /dev/shm
mount -t tmpfs none /dev/shm
ulimit -l unlimited

value() {
  tr ' ' '\n' </proc/cmdline | sed -n "s/^guest\.$1=//p"
}

# MAC,ADDRESS/BITS NAME: the card with that MAC gets the name and the address.
bring_up() {
  mac=${1%%,*}
  for card in /sys/class/net/*; do
    if [ "$(cat "$card/address")" = "$mac" ]; then
      /usr/bin/ip link set "${card##*/}" name "$2"
      # Neither DPDK's af_packet nor a relay finishes a sum that the card was to finish.
      ethtool -K "$2" tx off rx off tso off gso off gro off >/dev/null 2>&1
      [ "$2" = roce ] && /usr/bin/ip link set "$2" mtu "$(value mtu)"
      /usr/bin/ip link set "$2" up
      /usr/bin/ip address add "${1#*,}" dev "$2"
    fi
  done
}

# napi_tx=0: the network card gives a packet back as soon as it is queued, not at the interrupt that says it was sent.
# Soft-RoCE stops sending while 64 packets of a queue pair have not been given back, and waits for ever when that
# interrupt is lost, which happens in an emulated machine.
while read -r module; do
  [ "$module" = virtio_net ] && options=napi_tx=0 || options=
  # shellcheck disable=SC2086  # no option is no word
  insmod "/modules/$module.ko" $options || echo "guest: no module $module"
done </modules/order
/usr/bin/ip link set lo up
bring_up "$(value roce)" roce
bring_up "$(value tcp)" tcp
rdma link add rxe0 type rxe netdev roce || echo "guest: no rxe0"

for port in /sys/class/virtio-ports/*; do
  setsid /sbin/serve "/dev/${port##*/}" </dev/null >/dev/null 2>&1 &
done
while :; do
  sleep 1000000
done
