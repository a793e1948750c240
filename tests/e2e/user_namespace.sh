# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# For scripts that make network namespaces by `ip netns`, which source this: an ordinary user is root in a user
# namespace of his own, where /run is empty and his. Nobody else sees the names.

# Debian keeps ip, tc, sysctl and nft where an ordinary user's PATH does not look.
PATH=$PATH:/usr/sbin:/sbin

# Starts the calling script again in there, unless root runs it. Needs its `skip`.
#   become_root "$@"
become_root() {
  [[ $(id -u) -ne 0 ]] || return 0
  command -v unshare >/dev/null || skip "needs root, or unshare, which is not here"
  # With a network of its own, which `ip netns add` goes back to.
  local enter=(unshare --user --map-root-user --net --mount) error
  local own_run='mount -t tmpfs tmpfs /run && mkdir /run/netns'
  error=$("${enter[@]}" sh -c "$own_run" 2>&1) ||
    skip "needs root, or user namespaces for ordinary users, which cannot be made here: ${error:-no word why}"
  exec "${enter[@]}" sh -c "$own_run && exec \"\$@\"" sh "$BASH" "$0" "$@"
}
