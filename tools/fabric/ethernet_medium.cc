// SPDX-License-Identifier: Apache-2.0
//
// NICs behind interfaces of the kernel, mostly the near ends of veth pairs whose far ends are in network namespaces.
// The fabric is an Ethernet switch between them, so it carries whatever they send.
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "lib/ipc/fd.h"
#include "lib/transport/wire/network_header.h"
#include "tools/common/tool_error.h"
#include "tools/fabric/mac_table.h"
#include "tools/fabric/medium.h"
#include "tools/fabric/offload.h"

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23
#endif

namespace ub::fabric {
namespace {

using tools::ToolError;

constexpr size_t kBurst = 32;
constexpr size_t kLongestFrame = 65536 + 64;  // a kernel may leave segmentation to us
constexpr int kBufferBytes = 8 << 20;

[[noreturn]] void fail(const NicConfig& nic, const std::string& what, int error) {
  throw ToolError("NIC \"" + nic.name + "\", interface " + nic.interface + ": " + what + ": " + std::strerror(error));
}

void require(const NicConfig& nic, const ipc::Fd& fd, int option, const void* value, socklen_t bytes,
             const char* what) {
  if (::setsockopt(fd.get(), SOL_PACKET, option, value, bytes) != 0) fail(nic, std::string("cannot ") + what, errno);
}

ipc::Fd open_socket(const NicConfig& nic) {
  const unsigned index = ::if_nametoindex(nic.interface.c_str());
  if (index == 0) fail(nic, "there is no such interface in this network namespace", errno);
  ipc::Fd fd(::socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));  // protocol 0: nothing comes until bound
  if (!fd) fail(nic, "cannot open a packet socket, which needs CAP_NET_RAW", errno);
  const int on = 1;
  require(nic, fd, PACKET_IGNORE_OUTGOING, &on, sizeof on, "leave out what the host itself sends");
  require(nic, fd, PACKET_VNET_HDR, &on, sizeof on, "learn what the kernel left to do in a frame");
  packet_mreq all{};
  all.mr_ifindex = static_cast<int>(index);
  all.mr_type = PACKET_MR_PROMISC;
  require(nic, fd, PACKET_ADD_MEMBERSHIP, &all, sizeof all, "receive the frames of others");
  if (::setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUFFORCE, &kBufferBytes, sizeof kBufferBytes) != 0) {
    ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &kBufferBytes, sizeof kBufferBytes);
  }
  ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDBUF, &kBufferBytes, sizeof kBufferBytes);
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_ALL);
  address.sll_ifindex = static_cast<int>(index);
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) fail(nic, "cannot bind", errno);
  return fd;
}

class EthernetMedium final : public Medium {
 public:
  explicit EthernetMedium(const Config& config) : frame_(kLongestFrame) {
    for (const NicConfig& nic : config.nics) sockets_.push_back(open_socket(nic));
  }

  std::vector<int> fds() const override {
    std::vector<int> all;
    for (const ipc::Fd& fd : sockets_) all.push_back(fd.get());
    return all;
  }

  void receive(int fd, const Sink& sink) override {
    for (size_t nic = 0; nic < sockets_.size(); ++nic) {
      if (sockets_[nic].get() != fd) continue;
      for (size_t i = 0; i < kBurst && receive_one(nic, sink); ++i) {
      }
    }
  }

  void send(size_t to, std::span<const std::byte> frame, uint64_t tag) override {
    Offload left = offload_of(tag);
    iovec parts[] = {{&left, sizeof left}, {const_cast<std::byte*>(frame.data()), frame.size()}};
    if (::writev(sockets_[to].get(), parts, 2) < 0) ++refused_;
  }

  std::vector<MediumCount> counts() const override {
    return {{"flooded", flooded_}, {"unusable", unusable_}, {"refused", refused_}};
  }

 private:
  // False: there is nothing left.
  bool receive_one(size_t nic, const Sink& sink);
  void forward(size_t from, std::span<const std::byte> frame, uint64_t tag, const Sink& sink);

  std::vector<ipc::Fd> sockets_;  // by the number of the NIC
  std::vector<std::byte> frame_;
  MacTable table_;
  uint64_t flooded_ = 0;   // sent to all other NICs
  uint64_t unusable_ = 0;  // too short or too long
  uint64_t refused_ = 0;   // by the kernel, when it was sent on
};

bool EthernetMedium::receive_one(size_t nic, const Sink& sink) {
  Offload left{};
  iovec parts[] = {{&left, sizeof left}, {frame_.data(), frame_.size()}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  const ssize_t bytes = ::recvmsg(sockets_[nic].get(), &message, MSG_DONTWAIT);
  if (bytes < 0) return false;
  if (static_cast<size_t>(bytes) < sizeof left + wire::kEthSize || (message.msg_flags & MSG_TRUNC) != 0) {
    ++unusable_;
    return true;
  }
  forward(nic, {frame_.data(), static_cast<size_t>(bytes) - sizeof left}, tag_of(left), sink);
  return true;
}

void EthernetMedium::forward(size_t from, std::span<const std::byte> frame, uint64_t tag, const Sink& sink) {
  if (const std::optional<size_t> to = table_.look_up(frame, from)) {
    if (*to != from) sink(from, *to, frame, tag);
    return;
  }
  ++flooded_;
  for (size_t to = 0; to < sockets_.size(); ++to) {
    if (to != from) sink(from, to, frame, tag);
  }
}

}  // namespace

std::unique_ptr<Medium> open_ethernet_medium(const Config& config) { return std::make_unique<EthernetMedium>(config); }

}  // namespace ub::fabric
