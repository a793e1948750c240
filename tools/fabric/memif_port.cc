// SPDX-License-Identifier: Apache-2.0
//
// A NIC at the other end of a memif connection: shared memory between two processes, by DPDK's driver, whose code is in
// the plugin that NICs use, too. The fabric is the server, so its end is always there; programs connect, go, and come
// back. The memory is theirs.
#include <algorithm>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/config.h"
#include "dataplane/plugin_port.h"
#include "lib/transport/wire/network_header.h"
#include "tools/common/tool_error.h"
#include "tools/fabric/offload.h"
#include "tools/fabric/switch_port.h"

namespace ub::fabric {
namespace {

using tools::ToolError;

constexpr size_t kBursts = 4;               // taken at a time
constexpr size_t kMostWaiting = 1024;       // frames: the driver pauses now and then, and programs sleep
constexpr uint32_t kLongestPayload = 8192;  // whatever its NIC sends fits
constexpr size_t kLongestFrame = kLongestPayload + 300;
constexpr const char* kDriverBuffer = "16384";  // bytes
constexpr uint32_t kBuffers = 512;              // the driver copies, so they hold only what is being taken or sent
constexpr size_t kMegabytesPerNic = 8, kMegabytes = 32;

class MemifPort final : public SwitchPort {
 public:
  explicit MemifPort(std::unique_ptr<PluginPort> port) : port_(std::move(port)) {}

  int fd() const override { return -1; }
  bool receive(const Receiver& receiver) override;
  void send(std::span<const std::byte> frame, uint64_t tag) override;
  PortCounts counts() const override;

 private:
  size_t receive_burst(const Receiver& receiver);
  void send_waiting();

  std::unique_ptr<PluginPort> port_;
  std::deque<std::vector<std::byte>> waiting_;  // frames that the device did not take yet
  PortCounts counts_;
};

bool MemifPort::receive(const Receiver& receiver) {
  send_waiting();
  bool any = false;
  for (size_t burst = 0; burst < kBursts; ++burst) {
    const size_t frames = receive_burst(receiver);
    any |= frames != 0;
    if (frames < kBurst) break;
  }
  return any;
}

size_t MemifPort::receive_burst(const Receiver& receiver) {
  RxFrame frames[kBurst];
  const size_t count = port_->rx_burst({}, frames, kBurst);
  for (const RxFrame& frame : std::span(frames, count)) {
    if (frame.bytes >= wire::kEthSize) {
      receiver({frame.data, frame.bytes}, tag_of({}));
    } else {
      ++counts_.unusable;
    }
  }
  port_->rx_release();
  return count;
}

void MemifPort::send(std::span<const std::byte> frame, uint64_t tag) {
  const bool is_whole = offload_of(tag).segmentation == 0;  // no kernel will cut it here
  if (!port_->has_link()) {
    ++counts_.no_link;
  } else if (!is_whole || frame.size() > kLongestFrame || waiting_.size() == kMostWaiting) {
    ++counts_.refused;
  } else {
    waiting_.emplace_back(frame.begin(), frame.end());
    send_waiting();
  }
}

void MemifPort::send_waiting() {
  while (!waiting_.empty()) {
    const std::vector<std::byte>& frame = waiting_.front();
    std::byte* room = port_->tx_begin(frame.size());
    if (room == nullptr) break;
    std::copy(frame.begin(), frame.end(), room);
    port_->tx_commit(room, frame.size());
    waiting_.pop_front();
  }
  port_->tx_flush({});
}

PortCounts MemifPort::counts() const {
  const PluginPortCounters device = port_->counters();
  PortCounts all = counts_;
  all.unusable += device.rx_drop_too_long;
  all.no_link += device.tx_drop_no_link;
  return all;
}

// As that of NICs: where the plugin is, and what DPDK is started with.
DpdkConfig dpdk_config(const Config& config) {
  ConfigResult loaded = load_config();
  if (!loaded.config) throw ToolError(tools::kExitUsage, loaded.error);
  DpdkConfig dpdk = loaded.config->dpdk;
  if (dpdk.arguments.empty()) {
    const size_t megabytes = kMegabytes + kMegabytesPerNic * config.nics.size();
    dpdk.arguments = {"--no-huge", "--no-shconf", "-m", std::to_string(megabytes)};
  }
  return dpdk;
}

}  // namespace

std::unique_ptr<SwitchPort> open_memif_port(const Config& config, size_t nic) {
  const std::string where = "NIC \"" + config.nics[nic].name + "\", memif socket " + config.nics[nic].place;
  const DpdkConfig dpdk = dpdk_config(config);
  PluginPortOptions options;
  options.device =
      "net_memif" + std::to_string(nic) + ",role=server,socket=" + config.nics[nic].place + ",bsize=" + kDriverBuffer;
  options.arguments = dpdk.arguments;
  options.raw = true;
  options.mtu = kLongestPayload;
  options.buffers = kBuffers;
  std::string error;
  std::unique_ptr<PluginPort> port = open_plugin_port(dpdk.plugin, options, &error);
  if (error.find("Address already in use") != error.npos) {
    error += "; another program listens there: give the NIC another socket";
  }
  if (!port) throw ToolError(where + ": " + error);
  return std::make_unique<MemifPort>(std::move(port));
}

}  // namespace ub::fabric
