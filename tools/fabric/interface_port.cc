// SPDX-License-Identifier: Apache-2.0
//
// A NIC behind an interface of the kernel, mostly the near end of a veth pair whose far end is in a network namespace.
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "lib/ipc/fd.h"
#include "lib/transport/wire/network_header.h"
#include "tools/common/tool_error.h"
#include "tools/fabric/offload.h"
#include "tools/fabric/switch_port.h"

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
  throw ToolError("NIC \"" + nic.name + "\", interface " + nic.place + ": " + what + ": " + std::strerror(error));
}

void require(const NicConfig& nic, const ipc::Fd& fd, int option, const void* value, socklen_t bytes,
             const char* what) {
  if (::setsockopt(fd.get(), SOL_PACKET, option, value, bytes) != 0) fail(nic, std::string("cannot ") + what, errno);
}

ipc::Fd open_socket(const NicConfig& nic) {
  const unsigned index = ::if_nametoindex(nic.place.c_str());
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

class InterfacePort final : public SwitchPort {
 public:
  explicit InterfacePort(ipc::Fd socket) : socket_(std::move(socket)), frame_(kLongestFrame) {}

  int fd() const override { return socket_.get(); }

  bool receive(const Receiver& receiver) override {
    size_t taken = 0;
    while (taken < kBurst && receive_one(receiver)) ++taken;
    return taken != 0;
  }

  void send(std::span<const std::byte> frame, uint64_t tag) override {
    Offload left = offload_of(tag);
    iovec parts[] = {{&left, sizeof left}, {const_cast<std::byte*>(frame.data()), frame.size()}};
    if (::writev(socket_.get(), parts, 2) < 0) ++counts_.refused;
  }

  PortCounts counts() const override { return counts_; }

 private:
  // False: there is nothing left.
  bool receive_one(const Receiver& receiver);

  ipc::Fd socket_;
  std::vector<std::byte> frame_;
  PortCounts counts_;
};

bool InterfacePort::receive_one(const Receiver& receiver) {
  Offload left{};
  iovec parts[] = {{&left, sizeof left}, {frame_.data(), frame_.size()}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  const ssize_t bytes = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT);
  if (bytes < 0) return false;
  if (static_cast<size_t>(bytes) < sizeof left + wire::kEthSize || (message.msg_flags & MSG_TRUNC) != 0) {
    ++counts_.unusable;
    return true;
  }
  receiver({frame_.data(), static_cast<size_t>(bytes) - sizeof left}, tag_of(left));
  return true;
}

}  // namespace

std::unique_ptr<SwitchPort> open_interface_port(const NicConfig& nic) {
  return std::make_unique<InterfacePort>(open_socket(nic));
}

}  // namespace ub::fabric
