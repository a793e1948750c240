// SPDX-License-Identifier: Apache-2.0
//
// A queue that READs lines of remote memory by the calls of URMA, one at a time; and, at the other end, the queue that
// such READs are directed to, which needs nobody's attention. Thread: one. Failures are ToolErrors.
#pragma once

#include <urma_api.h>

#include <cstdint>

namespace ub::apps {

class ReadQueue {
 public:
  static constexpr uint32_t kLine = 64;

  explicit ReadQueue(urma_context_t*);
  ~ReadQueue();
  ReadQueue(const ReadQueue&) = delete;
  ReadQueue& operator=(const ReadQueue&) = delete;

  urma_jetty_id_t id() const { return jetty_->jetty_id; }

  // From now on READs go to this queue of the owner of the memory, which stays imported.
  void connect(urma_jetty_id_t owner, urma_target_seg_t* memory);
  // The line `at` bytes behind the memory's first byte; valid until the next call.
  const void* read(uint64_t at);

 private:
  void close();

  urma_context_t* context_;
  urma_jfc_t* jfc_ = nullptr;
  urma_jfr_t* jfr_ = nullptr;
  urma_jetty_t* jetty_ = nullptr;
  urma_target_jetty_t* owner_ = nullptr;
  urma_target_seg_t* memory_ = nullptr;
  urma_target_seg_t* line_segment_ = nullptr;
  alignas(kLine) unsigned char line_[kLine] = {};
};

}  // namespace ub::apps
