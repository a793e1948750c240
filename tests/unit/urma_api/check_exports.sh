#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_exports.sh LIBRARY LIST: every name of LIST is exported, and nothing that is not ours.
set -eu
exported=$(nm -D --defined-only "$1" | awk '{ print $3 }' | sed 's/@.*//' | sort -u)
missing=$(grep -v '^#' "$2" | sort -u | { while read -r name; do
  echo "$exported" | grep -qx "$name" || echo "$name"
done; })
foreign=$(echo "$exported" | grep -Ev '^(urma_|ub_|softub_)|^get_cpu_mhz$' || true)
if [ -n "$missing$foreign" ]; then
  [ -z "$missing" ] || echo "missing:" $missing
  [ -z "$foreign" ] || echo "should not be exported:" $foreign
  exit 1
fi
echo "$(grep -vc '^#' "$2") names exported"
