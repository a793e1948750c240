// SPDX-License-Identifier: Apache-2.0
//
// Where softubd and its applications meet if the configuration does not say.
//
// Thread: any; start-up only.
#pragma once

#include <string>

namespace ub {

// `configured` is daemon.socket; if it is empty:
// where a daemon of this user listens: /run/softub/softubd.sock for root, else softubd.sock in the default
// rendezvous directory.
std::string daemon_socket_to_listen(const std::string& configured);
// where an application of this user looks: at the socket of its own user's daemon, unless that one is dead and root's
// is there; else root's.
std::string daemon_socket_to_connect(const std::string& configured);

}  // namespace ub
