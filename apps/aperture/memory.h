// SPDX-License-Identifier: Apache-2.0
//
// Who holds memory and who uses it: a server offers memory and does nothing more, a client imports it. What the client
// must know of it goes over TCP, once. Failures are ToolErrors with a sentence for the user.
#pragma once

#include <urma_api.h>

#include <cstdint>
#include <string>

#include "apps/aperture/read_queue.h"

namespace ub::apps {

// liburma, started, and a device of it.
class Device {
 public:
  // Empty: the first one.
  explicit Device(const std::string& name);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  urma_context_t* context() const { return context_; }

 private:
  urma_context_t* context_ = nullptr;
};

// All that a client must know. Whoever has the token can use the memory.
struct Place {
  urma_seg_t segment;
  urma_token_t token;
  urma_jetty_id_t queue;  // of the memory's owner, for READs
};

// Zeroed memory that others load from, store to and do atomics on, until the object goes. The queue is there so that
// they can compare with READs.
class OfferedMemory {
 public:
  OfferedMemory(Device&, uint64_t bytes);
  ~OfferedMemory();
  OfferedMemory(const OfferedMemory&) = delete;
  OfferedMemory& operator=(const OfferedMemory&) = delete;

  Place place() const { return {segment_->seg, token_, queue_.id()}; }

 private:
  ReadQueue queue_;
  void* memory_;
  urma_token_t token_;
  urma_target_seg_t* segment_ = nullptr;
};

// Memory of somebody else, ready for softub_open() and softub_map().
class ImportedMemory {
 public:
  ImportedMemory(Device&, const Place&);
  ~ImportedMemory() { urma_unimport_seg(segment_); }
  ImportedMemory(const ImportedMemory&) = delete;
  ImportedMemory& operator=(const ImportedMemory&) = delete;

  urma_target_seg_t* segment() const { return segment_; }
  uint64_t bytes() const { return segment_->seg.len; }

 private:
  urma_target_seg_t* segment_;
};

// Tells whoever asks where the memory is, until Ctrl-C. `program` is what both ends are called.
[[noreturn]] void answer_clients(const std::string& program, uint16_t port, const OfferedMemory&);
// What such a server answers.
Place ask_server(const std::string& program, const std::string& host, uint16_t port);

}  // namespace ub::apps
