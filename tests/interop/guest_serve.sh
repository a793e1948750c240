#!/bin/busybox sh
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash
# Runs in the guest, for each virtio port: one command after the other. A line is "SECONDS COMMAND", the command in
# base64. The answer is "STATUS OUTPUT", the output in base64, both streams of it. What has not ended in time is killed
# (status 137), and so is what a command leaves behind: all of it is one process group.
files=/run/serve-${1##*/}
exec 3<>"$1"
while read -r seconds command <&3; do
  echo "$command" | base64 -d >"$files.command"
  # shellcheck disable=SC2016
  setsid sh -c 'echo $$ >"$0.session"; exec timeout -s KILL "$1" sh "$0.command"' "$files" "$seconds" \
    </dev/null >"$files.output" 2>&1 3<&-
  status=$?
  kill -KILL "-$(cat "$files.session")" 2>/dev/null
  echo "$status $(base64 -w 0 <"$files.output")" >&3
done
