// SPDX-License-Identifier: Apache-2.0
//
// One side of a test: device, queues, jettys, memory, and the peer's jettys and memory. Taken down in order
// whatever happens. Thread: one.
//
// Memory of a side: a control page, then room for what goes out, then room for what comes in, both cut into
// slots of one message. Both sides compute the same cut from the same options.
#pragma once

#include <softub_api.h>
#include <urma_api.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tools/perf/options.h"
#include "tools/perf/progress.h"

namespace ub::tools {

// How the memory is cut for one message size.
struct Layout {
  uint64_t size = 0, stride = 0;
  uint32_t slots = 1;  // per jetty, each way
};

class Endpoint {
 public:
  explicit Endpoint(const Options&);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  // The peer needs this to connect, and we need the peer's.
  Json introduction() const;
  void connect(const Json& peer_introduction);

  // Cuts the memory for this size, zeroes what comes in, prepares the requests, posts receives.
  void prepare(uint64_t size);
  const Layout& layout() const { return layout_; }

  // ---- requests ----
  uint32_t depth() const { return depth_; }
  uint32_t room(uint32_t jetty) const { return depth_ - queues_[jetty].outstanding; }
  // Stalls a jetty beside those that are measured for good (--stalled): nobody receives its first message, and requests
  // with a strong order wait behind it.
  void stall();
  // How many messages the peer has receives for (send_bw).
  uint64_t credit() { return control(kCredit) - sends_posted_; }
  // Posts `count` requests (<= room) with one call. `last`: nothing follows, so the last one must report.
  void post(uint32_t jetty, uint32_t count, bool last = false);
  // Takes up to 16 completions; returns how many requests ended.
  uint32_t reap();
  uint64_t outstanding() const { return outstanding_; }
  const Progress& progress() const { return progress_; }
  uint32_t unsignaled(uint32_t jetty) const { return queues_[jetty].unsignaled; }
  uint64_t posted(uint32_t jetty) const { return queues_[jetty].posted; }

  // ---- receives ----
  // Takes up to 16 messages, checks them (--verify), and posts their buffers again.
  uint32_t receive();
  // The completion queue stays empty until something happens; at most 100 ms.
  void wait_event(bool rx);

  // ---- memory ----
  uint8_t* out_slot(uint32_t jetty, uint32_t slot) {
    return memory_ + kControlBytes + (uint64_t{jetty} * layout_.slots + slot) * layout_.stride;
  }
  uint8_t* in_slot(uint32_t jetty, uint32_t slot) {
    return memory_ + kControlBytes + out_bytes_ + (uint64_t{jetty} * layout_.slots + slot) * layout_.stride;
  }

  // The peer's memory, and where its slots lie in it.
  urma_target_seg_t* remote_segment() const { return remote_segment_; }
  uint64_t remote_out(uint32_t slot) const { return kControlBytes + slot * layout_.stride; }
  uint64_t remote_in(uint32_t slot) const { return kControlBytes + out_bytes_ + slot * layout_.stride; }

  // ---- control words, written by the peer with a jetty of their own ----
  enum ControlWord : uint32_t { kCredit = 0, kDone = 64, kSource = 128, kStalled = 192 };
  volatile uint64_t& control(ControlWord w) { return *reinterpret_cast<volatile uint64_t*>(memory_ + w); }
  // Writes a control word of the peer. False: the last such request is still under way.
  bool write_control(ControlWord, uint64_t value);
  bool control_idle();
  // Tells the peer about receives posted since, if it is worth it.
  void advertise_receives();

  // ---- --verify ----
  uint64_t errors() const { return data_errors_; }
  void count_error(const std::string& what);
  const std::string& first_error() const { return first_error_; }
  // What the target's memory must look like after `posted` requests of the peer on each jetty.
  void check_target_memory(const std::vector<uint64_t>& posted);

  // What went to the peer so far.
  softub_transports_t transports() const;

  std::string device_name() const { return context_->dev->name; }
  std::string eid() const;
  uint32_t uasid() const { return context_->uasid; }
  uint32_t inline_bytes() const { return inline_bytes_; }
  uint64_t messages_sent() const { return sends_posted_; }  // of all sizes, as the next
  uint64_t messages_received() const { return messages_received_; }

 private:
  struct Queue {
    urma_jetty_t* jetty = nullptr;
    urma_target_jetty_t* target = nullptr;
    std::vector<urma_jfs_wr_t> requests;  // one per slot
    std::vector<urma_sge_t> local, remote;
    uint32_t next = 0;         // slot of the next request
    uint32_t outstanding = 0;  // posted and not known to have ended
    uint32_t unsignaled = 0;   // of these, since the last one that will complete visibly
    uint64_t posted = 0;
  };
  static constexpr uint64_t kControlBytes = 4096;

  void open_device();
  void check_limits() const;
  void create_queues();
  void create_event_channels();
  void create_jetty(Queue&, urma_jfc_t* send_jfc, uint32_t depth);
  void import_jetty(Queue&, const std::string& raw_id);
  urma_sge_t control_sge(ControlWord, bool remote) const;
  void allocate_memory();
  void build_requests(uint32_t jetty);
  urma_place_order_t order_of(uint64_t number) const;
  void prepare_payload(Queue&, uint32_t jetty, uint32_t slot);
  void check_completed(Queue&, uint32_t jetty, uint32_t count);
  void post_receives(const uint32_t* slots, uint32_t count);
  void check_record(const urma_cr_t&, const char* what) const;
  void close();

  const Options& options_;
  bool initialised_ = false;
  urma_context_t* context_ = nullptr;
  urma_device_attr_t attr_ = {};
  urma_jfce_t *tx_jfce_ = nullptr, *rx_jfce_ = nullptr;
  int tx_epoll_ = -1, rx_epoll_ = -1;  // hold the descriptors of the event channels, with options_.epoll
  urma_jfc_t *tx_jfc_ = nullptr, *rx_jfc_ = nullptr, *control_jfc_ = nullptr;
  urma_jfr_t* jfr_ = nullptr;
  std::vector<Queue> queues_;
  uint32_t depth_ = 0, cq_mod_ = 1, inline_bytes_ = 0;
  uint64_t outstanding_ = 0, sends_posted_ = 0;
  Progress progress_;

  Queue control_;
  bool control_busy_ = false;
  Queue stalled_;

  Layout layout_;
  uint8_t* memory_ = nullptr;
  uint64_t memory_bytes_ = 0, out_bytes_ = 0;  // all; room for what goes out
  urma_target_seg_t *segment_ = nullptr, *remote_segment_ = nullptr;
  urma_token_t token_ = {}, remote_token_ = {};

  uint32_t receive_slots_ = 0, receives_ = 0;  // buffers for messages; receives posted
  uint64_t receive_stride_ = 0;
  std::vector<urma_jfr_wr_t> receive_wrs_;
  std::vector<urma_sge_t> receive_sges_;
  uint64_t receives_posted_ = 0, receives_advertised_ = 0, messages_received_ = 0;

  uint64_t data_errors_ = 0;
  std::string first_error_;
};

const char* record_status_name(int status);

}  // namespace ub::tools
