// SPDX-License-Identifier: Apache-2.0
#include "apps/aperture/memory.h"

#include <fmt/format.h>
#include <softub_api.h>
#include <sys/random.h>

#include <cstring>

#include "apps/aperture/failure.h"
#include "tools/common/hex.h"
#include "tools/common/peer.h"

namespace ub::apps {

using tools::Json;
using tools::Peer;
using tools::TcpListener;
using tools::TcpSocket;
using tools::ToolError;

namespace {

constexpr int kPatienceMs = 10'000;

urma_token_t random_token() {
  urma_token_t token;
  if (getrandom(&token, sizeof token, 0) != static_cast<ssize_t>(sizeof token)) throw ToolError("no random numbers");
  return token;
}

// What liburma has to say, if it is worth a user's attention.
void print_log(int level, char* text) {
  if (level <= URMA_VLOG_LEVEL_WARNING) fmt::print(stderr, "{}{}", text, std::strchr(text, '\n') ? "" : "\n");
}

}  // namespace

Device::Device(const std::string& name) {
  urma_register_log_func(print_log);
  if (urma_init(nullptr) != URMA_SUCCESS) throw ToolError("liburma does not start");
  try {
    int count = 0;
    urma_device_t** list = urma_get_device_list(&count);
    std::string wanted = name;
    urma_device_t* device = !name.empty() ? urma_get_device_by_name(wanted.data()) : count > 0 ? list[0] : nullptr;
    urma_free_device_list(list);
    if (device == nullptr) throw ToolError(name.empty() ? "there is no URMA device" : "there is no device " + name);
    context_ = need(urma_create_context(device, 0), "open the device");
  } catch (...) {
    urma_uninit();
    throw;
  }
}

Device::~Device() {
  urma_delete_context(context_);
  urma_uninit();
}

OfferedMemory::OfferedMemory(Device& device, uint64_t bytes)
    : queue_(device.context()),
      memory_(need(softub_alloc(bytes), fmt::format("allocate {} bytes", bytes))),
      token_(random_token()) {
  urma_seg_cfg_t cfg = {};
  cfg.va = reinterpret_cast<uint64_t>(memory_);
  cfg.len = bytes;
  cfg.token_value = token_;
  cfg.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
  cfg.flag.bs.access = URMA_ACCESS_READ | URMA_ACCESS_WRITE | URMA_ACCESS_ATOMIC;
  segment_ = urma_register_seg(device.context(), &cfg);
  if (segment_ == nullptr) {
    const std::string why = std::strerror(errno);
    softub_free(memory_);
    throw ToolError("cannot register memory: " + why);
  }
}

OfferedMemory::~OfferedMemory() {
  urma_unregister_seg(segment_);
  softub_free(memory_);
}

ImportedMemory::ImportedMemory(Device& device, const Place& place) {
  urma_seg_t segment = place.segment;
  urma_token_t token = place.token;
  urma_import_seg_flag_t flag = {};
  flag.bs.access = URMA_ACCESS_READ | URMA_ACCESS_WRITE | URMA_ACCESS_ATOMIC;
  segment_ = need(urma_import_seg(device.context(), &segment, &token, 0, flag), "import the server's memory");
}

void answer_clients(const std::string& program, uint16_t port, const OfferedMemory& memory) {
  TcpListener listener(port);
  fmt::print("{} bytes of memory for others; clients ask on TCP port {}\n", memory.place().segment.len,
             listener.port());
  std::fflush(stdout);
  for (;;) {
    TcpSocket client = listener.accept();
    try {
      Peer(std::move(client), program, "the client").send("memory", {{"place", tools::to_hex(memory.place())}});
    } catch (const ToolError& e) {
      tools::throw_if_stopped();
      fmt::print(stderr, "{}: a client went away: {}\n", program, e.what());
    }
  }
}

Place ask_server(const std::string& program, const std::string& host, uint16_t port) {
  Peer server(TcpSocket::connect(host, port), program, "the server");
  return tools::from_hex<Place>(server.expect("memory", kPatienceMs).value("place", ""));
}

}  // namespace ub::apps
