// SPDX-License-Identifier: Apache-2.0
//
// Memory of another program that this one has mapped, with the socket by which its owner's NIC tells that the right has
// ended (lib/ipc/share.h). The watcher (share_watcher.h) listens.
#pragma once

namespace ub::aperture {

class WatchedShare {
 public:
  virtual ~WatchedShare() = default;

  // Negative: nobody has to listen any more.
  virtual int socket() const = 0;
  // Something is to be read from the socket. True: the right has ended, and the memory is not used any more.
  virtual bool listen() = 0;
  // This program's NIC ends: is it used by that? Then end() is called.
  virtual bool needs_nic() const { return false; }
  // Nothing uses the memory any more when this returns.
  virtual void end() {}
};

// What the owner's NIC says. A hang-up says that it is gone.
enum class ShareNews { kNothing, kRightEnded, kOwnerGone };
ShareNews hear_share(int socket);

}  // namespace ub::aperture
