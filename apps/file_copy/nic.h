// SPDX-License-Identifier: Apache-2.0
//
// What file_copy needs of liburma: one jetty, memory that a peer may write, and WRITEs in flight.
#pragma once

#include <urma_api.h>

#include <cstdint>
#include <string>

namespace ub::apps {

// Device, queues and one jetty in RM mode. Takes everything down at the end.
class Nic {
 public:
  // Empty: the first device. `in_flight`: how many WRITEs at a time.
  Nic(const std::string& device, uint32_t in_flight);
  ~Nic();
  Nic(const Nic&) = delete;
  Nic& operator=(const Nic&) = delete;

  urma_context_t* context() const { return context_; }
  urma_jetty_t* jetty() const { return jetty_; }
  urma_jfc_t* jfc() const { return jfc_; }
  urma_token_t token() const { return token_; }  // of the jetty
  uint64_t max_message() const { return max_message_; }

 private:
  void close();

  bool initialised_ = false;
  urma_context_t* context_ = nullptr;
  urma_jfc_t* jfc_ = nullptr;
  urma_jfr_t* jfr_ = nullptr;
  urma_jetty_t* jetty_ = nullptr;
  urma_token_t token_ = {};
  uint64_t max_message_ = 0;
};

// Memory that a peer with the token may write and read, until the object goes.
class SharedMemory {
 public:
  SharedMemory(Nic&, void* memory, uint64_t bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  urma_target_seg_t* segment() const { return segment_; }
  urma_token_t token() const { return token_; }

 private:
  urma_target_seg_t* segment_ = nullptr;
  urma_token_t token_ = {};
};

// All that a peer needs to write there.
struct Address {
  urma_jetty_id_t jetty;
  urma_seg_t segment;
  urma_token_t jetty_token, segment_token;
};

// The way to memory of a peer.
class RemoteMemory {
 public:
  RemoteMemory(Nic&, const Address&);
  ~RemoteMemory();
  RemoteMemory(const RemoteMemory&) = delete;
  RemoteMemory& operator=(const RemoteMemory&) = delete;

  uint64_t bytes() const { return segment_->seg.len; }
  // Starts one WRITE; `local` lies in `memory`. It ends with the next completion that poll() has not counted.
  void write(uint64_t offset, const void* local, uint32_t bytes, const SharedMemory& memory);
  // How many more WRITEs have ended, in the order of their start. RequestFailed if one did.
  uint32_t poll();

 private:
  Nic& nic_;
  urma_target_jetty_t* target_ = nullptr;
  urma_target_seg_t* segment_ = nullptr;
};

}  // namespace ub::apps
