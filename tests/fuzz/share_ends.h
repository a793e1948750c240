// SPDX-License-Identifier: Apache-2.0
// share_ends.h - what is at both ends of the door to memory that others map, for fuzz_share_door.cc: a Core of a few
// segments, and programs. A program knows what it must be told, and reads nothing else.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstring>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "dataplane/share_door.h"
#include "lib/base/assert.h"
#include "lib/ipc/access_gate.h"
#include "lib/ipc/lane.h"
#include "lib/ipc/link_hello.h"
#include "lib/ipc/unix_socket.h"

namespace ub {

inline constexpr size_t kMemoryBytes = 2 * ipc::kSharePage, kMemories = 2;

// ---- the Core --------------------------------------------------------------------------------------------------

// Where peers find the memories.
struct Place {
  uint32_t token_id;
  uint64_t address, length;
  size_t memory;
  bool needs_token;
};
inline constexpr Place kPlaces[] = {
    {7, 0x10000, kMemoryBytes, 0, true},
    {7, 0x10000 + kMemoryBytes, kMemoryBytes - 100, 1, true},  // behind it
    {8, 0x10000, kMemoryBytes, 0, false},
    {9, 0x30000, kMemoryBytes / 2 + 1, 1, true},
};
inline constexpr size_t kPlaceCount = std::size(kPlaces);

// At each place there is a segment, if it is registered.
struct SmallCore {
  static constexpr uint32_t kToken = 0x5EC2E7;
  static constexpr Owner kOwner = 3;

  struct Segment {
    uint32_t handle = 0;  // 0: it is not registered
    uint32_t token = kToken;
    uint8_t access = kAccessRead | kAccessWrite;
    uint32_t generation = 0;
  };
  Segment segments[kPlaceCount];
  uint32_t revocations = 0;

  static const Place& place_of(uint32_t handle) { return kPlaces[(handle - 1) % kPlaceCount]; }
  static uint64_t local_address(const Place& p) { return p.address + 0x7000'0000; }

  bool has(uint32_t handle) const { return handle != 0 && segments[(handle - 1) % kPlaceCount].handle == handle; }
  uint32_t accessible_segment(const RemoteAccess& r) const {
    for (size_t i = 0; i < kPlaceCount; ++i) {
      const Place& p = kPlaces[i];
      const Segment& s = segments[i];
      const uint64_t offset = r.address - p.address;
      if (r.token_id != p.token_id || offset >= p.length || r.bytes > p.length - offset) continue;
      const bool fits = !p.needs_token || (r.has_token && r.token_value == s.token);
      return fits && (s.access & r.access) != 0 ? s.handle : 0;
    }
    return 0;
  }
  // Does the request name all of the segment, and have this right to it?
  bool may(const ipc::ShareRequest& r, uint32_t handle, uint8_t right) const {
    const RemoteAccess access{r.token_id, r.token_required != 0, r.token_value, r.address, r.length, right};
    return accessible_segment(access) == handle && r.length == place_of(handle).length;
  }
  ShareDoor::Rights rights() const {
    return {[this](const RemoteAccess& r) { return accessible_segment(r); },
            [this](Owner owner, uint32_t handle, uint64_t at) {
              return has(handle) && owner == kOwner && at == local_address(place_of(handle));
            },
            revocations};
  }
  // Registers or unregisters. The handle is a new one until forget() was called.
  void turn(size_t place) {
    Segment& s = segments[place];
    if (s.handle == 0) {
      s.handle = static_cast<uint32_t>(s.generation * kPlaceCount + place + 1);
    } else {
      s.handle = 0;
      ++s.generation;
      ++revocations;
    }
  }
  // The door has looked: it does not know any more what was unregistered.
  void forget() {
    for (Segment& s : segments) {
      if (s.handle == 0) s.generation = 0;
    }
  }
};

// ---- programs --------------------------------------------------------------------------------------------------

inline ino_t file_of(int memory) {
  struct stat st;
  UB_ASSERT(fstat(memory, &st) == 0);
  return st.st_ino;
}

struct Message {
  enum class Kind : uint8_t { kRefusal, kOtherRefusal, kToRead, kToWrite, kNotice };  // other: of a link or a lane
  Kind kind;
  ino_t file = 0;
  bool gate = false;  // the memory comes with a gate, for a NIC
  bool atomics = false;

  void check(std::span<const std::byte> bytes, int memory) const {
    const bool writable = kind == Kind::kToWrite, grants = writable || kind == Kind::kToRead;
    UB_ASSERT(grants == (memory >= 0));
    if (kind == Kind::kNotice) {
      UB_ASSERT(as<ipc::ShareNotice>(bytes).magic == ipc::kShareMagic);
    } else if (kind == Kind::kOtherRefusal && bytes.size() == sizeof(ipc::LaneReply)) {
      const auto reply = as<ipc::LaneReply>(bytes);
      UB_ASSERT(reply.refused == 1 && has_sentence(reply));
    } else if (kind == Kind::kOtherRefusal) {
      const auto reply = as<ipc::LinkReply>(bytes);
      UB_ASSERT(reply.code != ipc::Refusal::kNone && has_sentence(reply));
    } else {
      const auto reply = as<ipc::ShareReply>(bytes);
      UB_ASSERT(reply.magic == ipc::kShareMagic && reply.version == ipc::kShareVersion && reply.bytes == sizeof reply);
      UB_ASSERT(reply.refused == (grants ? 0 : 1) && reply.writable == (writable ? 1 : 0));
      UB_ASSERT(reply.atomics == (atomics ? 1 : 0));
      UB_ASSERT(has_sentence(reply) == !grants);
    }
    if (grants) check_memory(memory, writable);
  }

 private:
  template <class T>
  static T as(std::span<const std::byte> bytes) {
    T message;
    UB_ASSERT(bytes.size() == sizeof message);
    std::memcpy(&message, bytes.data(), sizeof message);
    return message;
  }
  template <class Reply>
  static bool has_sentence(const Reply& reply) {
    return reply.text[0] != 0 && std::end(reply.text)[-1] == 0;
  }
  void check_memory(int memory, bool writable) const {
    UB_ASSERT(file_of(memory) == file);
    UB_ASSERT((fcntl(memory, F_GETFL) & O_ACCMODE) == (writable ? O_RDWR : O_RDONLY));
    void* at = mmap(nullptr, kMemoryBytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    UB_ASSERT((at != MAP_FAILED) == writable);
    if (at != MAP_FAILED) munmap(at, kMemoryBytes);
  }
};

struct Program {
  ipc::Fd socket;              // empty: it, or the NIC, hung up
  bool lazy = false;           // it reads at the end, and says nothing but its greeting
  bool at_nic = false;         // the NIC has the other end
  bool ended = false;          // it will not say anything
  size_t words = 0;            // those that the NIC has not taken off
  std::vector<Message> inbox;  // what it must have been told, and has not read
  ipc::Mapping gate;           // it is a NIC, and got one

  // All that there is to read must be all that it was told.
  void read() {
    for (;;) {
      std::byte message[512];
      size_t bytes, fd_count;
      ipc::Fd fds[ipc::kMaxMessageFds];
      auto status = ipc::receive_message(socket.get(), message, &bytes, fds, &fd_count);
      if (status == ipc::SocketStatus::kClosed) {  // before all else comes the error that its words were not read
        status = ipc::receive_message(socket.get(), message, &bytes, fds, &fd_count);
      }
      if (status != ipc::SocketStatus::kOk) {
        UB_ASSERT(status == (at_nic ? ipc::SocketStatus::kAgain : ipc::SocketStatus::kClosed) && inbox.empty());
        if (!at_nic) socket.reset();
        return;
      }
      UB_ASSERT(!inbox.empty() && fd_count <= (inbox.front().gate ? 3 : 1));
      inbox.front().check(std::span(message).first(bytes), fds[0].get());
      if (inbox.front().gate) take_gate(fds[1].get(), fds[2].get());
      if (inbox.front().kind == Message::Kind::kNotice && gate) UB_ASSERT(!passes());
      inbox.erase(inbox.begin());
    }
  }
  // Through its gate.
  bool passes() const {
    auto* own = reinterpret_cast<ipc::AccessGate*>(gate.data());
    const bool entered = own->enter();
    if (entered) own->leave();
    return entered;
  }
  // The NIC tells it something. False: it has hung up.
  bool hear(Message message) {
    if (socket) inbox.push_back(message);
    return bool(socket);
  }
  bool send(std::span<const std::byte> message, std::span<const int> fds) const {
    return ipc::send_message(socket.get(), message, fds) == ipc::SocketStatus::kOk;
  }
  void hang_up() {
    socket.reset();
    ended = true;
  }

 private:
  void take_gate(int gate_page, int life_page) {
    std::string why;
    ipc::Mapping life;
    UB_ASSERT(ipc::check_sealed_memfd(gate_page, ipc::AccessGate::kBytes, &why));
    UB_ASSERT(gate.map(gate_page, ipc::AccessGate::kBytes, &why));
    UB_ASSERT(!life.map(life_page, ipc::LifePage::kBytes, &why));
    UB_ASSERT(life.map(life_page, ipc::LifePage::kBytes, &why, false));
    UB_ASSERT(!reinterpret_cast<const ipc::LifePage*>(life.data())->is_dead());
  }
};

}  // namespace ub
