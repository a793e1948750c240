// SPDX-License-Identifier: Apache-2.0
//
// How instances of one host find each other: a directory with one listening socket per (EID, UDP port).
//
//   <dir>/<EID, 32 hex digits>-<port>.sock   the socket
//   <dir>/<EID, 32 hex digits>-<port>.lock   locked (flock) while its owner lives: nobody else takes the name
//   <dir>/<EID, 32 hex digits>-<port>.id     a symbolic link: whoever has that port of ids (docs/identity.md); its text
//                                            is the uasid, whose lower half is the port of a socket above
//
// The default directory is private to a user (mode 0700). Its name holds the user id and the network namespace, so that
// equal addresses in different namespaces do not meet. An owner that is killed leaves its files behind, but not its
// lock. So the next owner replaces the files, and anybody who fails to connect removes them.
//
// Thread: one thread calls open, publish and withdraw; any thread calls the const functions.
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

  // Uses `directory` (empty: the default), and makes it with mode 0700 if it does not exist. False and `*error`: it
  // cannot be made, or it is not a directory of this user that others cannot write to.
  bool open(const std::string& directory, std::string* error);
  const std::string& directory() const { return directory_; }

  // Takes the name and listens. kTaken: another process has the name.
  PublishStatus publish(const Name&, std::string* error);
  size_t published() const { return entries_.size(); }
  const Name& name(size_t i) const { return entries_[i].name; }
  int listener(size_t i) const { return entries_[i].listener.get(); }
  // Says that the port of ids is ours, because we have bound it. It replaces the word of a process that is gone. It has
  // no effect if the file system refuses.
  void announce(const Name& port_of_ids, uint32_t uasid);
  void retract(const Name& port_of_ids);
  // The one who announced that port last, and who may be gone. Empty: nobody announced it.
  std::optional<uint32_t> holder(const Name& port_of_ids) const;
  // What the holder announced was not true any more: removes it, unless another one has announced the port meanwhile.
  void forget_holder(const Name& port_of_ids, uint32_t uasid) const;
  // Removes our sockets and gives our names back.
  void withdraw();

  std::string path_of(const Name&) const;
  // Is there a socket of that name? It may belong to a dead process.
  bool listed(const Name&) const;
  std::vector<Name> list() const;
  // Call it after a refused connection: it removes the files if no process holds the name. True: they are removed.
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
