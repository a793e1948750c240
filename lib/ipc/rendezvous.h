// SPDX-License-Identifier: Apache-2.0
//
// How instances of one host find each other: a directory with one listening socket per (EID, UDP port).
//
//   <dir>/<EID, 32 hex digits>-<port>.sock   the socket
//   <dir>/<EID, 32 hex digits>-<port>.lock   locked (flock) while its owner lives: nobody else takes the name
//   <dir>/<EID, 32 hex digits>-<port>.id     a symbolic link: whoever has that port of ids (docs/identity.md); its text
//                                            is the uasid, whose lower half is the port of a socket above
//
// The default directory is private to a user (mode 0700) and its name holds user id and network namespace, so
// that equal addresses in different namespaces do not meet. A killed owner leaves its files behind; its lock
// is gone, so the next owner replaces them, and whoever fails to connect removes them.
//
// Thread: open, publish, withdraw: one; the const calls: any.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/ipc/fd.h"

namespace ub::ipc {

class Rendezvous {
 public:
  struct Name {
    std::array<uint8_t, 16> eid{};
    uint16_t port = 0;
    bool operator==(const Name&) const = default;
  };

  enum class PublishStatus : uint8_t { kOk, kTaken, kFailed };

  Rendezvous() = default;
  ~Rendezvous() { withdraw(); }
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  // $XDG_RUNTIME_DIR, /run/user/<uid> or /tmp, then softub-<uid>-<network namespace inode>.
  static std::string default_directory();

  // Uses `directory` (empty: the default), creating it with mode 0700. False and `*error`: it cannot be made,
  // or is not a directory of this user that others cannot write.
  bool open(const std::string& directory, std::string* error);
  const std::string& directory() const { return directory_; }

  // Takes the name and listens. kTaken: another process has it.
  PublishStatus publish(const Name&, std::string* error);
  size_t published() const { return entries_.size(); }
  const Name& name(size_t i) const { return entries_[i].name; }
  int listener(size_t i) const { return entries_[i].listener.get(); }
  // Says that the port of ids is ours: we have bound it. Replaces what somebody said who is gone. Without effect if the
  // file system refuses.
  void announce(const Name& port_of_ids, uint32_t uasid);
  void retract(const Name& port_of_ids);
  // Who said so last, and may be gone. Empty: nobody did.
  std::optional<uint32_t> holder(const Name& port_of_ids) const;
  // That was not true any more: removed, unless somebody else said so meanwhile.
  void forget_holder(const Name& port_of_ids, uint32_t uasid) const;
  // Removes our sockets and gives the names back.
  void withdraw();

  std::string path_of(const Name&) const;
  // Is there a socket of that name? It may be a dead process's.
  bool listed(const Name&) const;
  std::vector<Name> list() const;
  // After a refused connection: removes the files if no process holds the name. True: removed.
  bool remove_if_stale(const Name&) const;

 private:
  struct Entry {
    Name name;
    Fd lock;
    Fd listener;
  };

  std::string stem(const Name&) const;
  void remove_stale_holders() const;

  std::string directory_;
  std::vector<Entry> entries_;
  std::vector<std::pair<Name, uint32_t>> announced_;
};

}  // namespace ub::ipc
