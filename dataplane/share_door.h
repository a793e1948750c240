// SPDX-License-Identifier: Apache-2.0
//
// Memory of this NIC's programs that others on the host map (lib/ipc/share.h). An owner offers the memory of a segment;
// whoever asks for it gets its descriptor if the Core would let it read the segment. From then on the NIC knows who
// holds it, and tells them when the Core would not let them any more.
//
// Whether a holder has let go is looked at when somebody wants to know, and whenever there are twice as many.
//
// Holders may be NICs, which access the memory themselves through a gate (lib/ipc/access_gate.h). When the right of one
// ends, serve() closes the gate, and waits until the NIC is not inside: for kGatePatience at most, in case it was
// stopped there.
//
// Thread: admit() and has_pending() from any; all else by the owner of the Core.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "lib/base/time.h"
#include "lib/ipc/access_gate.h"
#include "lib/ipc/fd.h"
#include "lib/ipc/memfd.h"
#include "lib/ipc/share.h"
#include "lib/transport/resource/segments.h"

namespace ub {

class ShareDoor {
 public:
  ~ShareDoor() { close(); }
  // Closes all gates, and waits for who is inside.
  void close();

  static constexpr size_t kMaxHolders = 1024;  // and so many may ask at once
  static constexpr size_t kFewHolders = 16;
  static constexpr Duration kGatePatience = milliseconds(100);  // with all visitors together

  // What the Core says.
  struct Rights {
    std::function<uint32_t(const RemoteAccess&)> segment_of;  // Core::accessible_segment
    std::function<bool(Owner owner, uint32_t segment, uint64_t address)> has_segment;
    uint32_t revocations;
  };

  // A program asks at this socket. It is answered by serve().
  void admit(ipc::Fd socket, const ipc::ShareHello&);
  bool has_pending() const { return pending_.load(std::memory_order_acquire); }
  // Is there something for serve() to do?
  bool wants(uint32_t revocations) const { return has_pending() || revocations != seen_revocations_; }

  // Answers those who asked, and tells holders whose rights have ended.
  void serve(const Rights&);

  // The memory of a registered segment, all of it, may be mapped. `memory` is a sealed memfd of whole pages, of which a
  // descriptor of its own is kept until the segment is unregistered. False: out of descriptors.
  bool offer(uint32_t segment, const SegmentConfig&, int memory, bool writable);

  // Who has that memory mapped, by whatever segment, after all whose rights have ended were told. A NIC counts only if
  // it was still inside when its gate was closed, and is.
  std::vector<ipc::ShareHolder> holders(int memory, const Rights&);

  // What NICs did in memory of ours since the last call: requests, and bytes that they wrote and read.
  struct Accesses {
    uint64_t requests = 0, bytes = 0;
  };
  Accesses take_accesses();
  // From now on NICs get gates. `life` (LifeSign::reader()) tells them of our death; it stays the caller's.
  void give_gates(int life) { life_ = life; }

 private:
  struct Asker {
    ipc::Fd socket;
    ipc::ShareHello hello;
  };
  struct Offer {
    ipc::Fd memory;
    ino_t file;
    Owner owner;
    uint64_t local_address, length;
    bool writable;
  };
  struct Holder {
    ipc::Fd socket;
    uint32_t segment;
    ino_t file;  // no other memory has this number as long as it is held
    ipc::ShareRequest right;
    bool told;
    ipc::Mapping gate;     // of a NIC, else none
    bool awaited = false;  // its gate was closed just now, and it may still be inside

    ipc::AccessGate* access() const { return reinterpret_cast<ipc::AccessGate*>(gate.data()); }
    void close_gate();
    Accesses taken;  // what take_accesses() has told of it
  };

  void answer(Asker&, const Rights&);
  // The memory, and whether to write, too. Null: `*why`.
  const Offer* find(const ipc::ShareRequest&, const Rights&, uint32_t* segment, bool* writable, std::string* why);
  bool make_gate(Holder& holder, ipc::Fd* descriptor, std::string* why) const;
  void tell_holders(const Rights&);
  void await_outside();
  void count_accesses(Holder& holder);
  void sweep();

  std::mutex askers_mutex_;
  std::vector<Asker> askers_;
  std::atomic<bool> pending_{false};
  std::map<uint32_t, Offer> offers_;  // by segment
  std::vector<Holder> holders_;
  uint32_t seen_revocations_ = 0;
  size_t sweep_at_ = kFewHolders;  // holders, at which those are looked for that have let go
  int life_ = -1;  // negative: no NIC gets a gate
  Accesses accesses_;  // not taken yet
};

}  // namespace ub
