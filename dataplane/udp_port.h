// SPDX-License-Identifier: Apache-2.0
//
// UB over ordinary UDP sockets (UBoE), and RoCEv2 beside it: no privilege, no device, any routed network.
//
// One unconnected socket per local address, IPv4 or IPv6, all on the same UDP port; for RoCE a second one per address,
// on port 4791; further ones on the ports of our ids, where nothing comes but questions for them. The Core hands over
// whole frames; the UDP payload leaves through the socket of the frame's source address and port to its destination
// address and port. On receive the Ethernet, IP and UDP headers are written in front of the payload as the ICRC rules
// want them: IPv4 ID 0 with DF, TTL 64, correct header checksum, UDP checksum 0, TOS as received if wanted (ECN). The
// kernel sends IPv4 ID 0 only on an unconnected socket with DF, hence IP_MTU_DISCOVER=DO and no connect. What others
// sent as ID a socket does not tell (LinkConfig::identification_lost).
//
// A frame leaves with the DSCP and the ECN code point of its header. Sockets have the DSCP of the options, so that only
// frames with another one, or with an ECN code point, need a control message.
//
// One link stands for the whole port. Sends are batched (sendmmsg) and leave at tx_flush, or when the batch
// is full. What the socket refuses for lack of room stays and leaves at a later flush; what it refuses for
// good (too long, no route) is counted and dropped, as a network would.
//
// UDP_SEGMENT (one system call for many packets to one peer) is not used: where the kernel or a device splits what it
// makes, it counts up the IPv4 ID, and a peer that sees the ID (DPDK, hardware) finds a wrong ICRC.
//
// Thread: the owner of the Core, except open(), open_roce() and port() (start-up), the constants and has_roce().
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dataplane/id_claims.h"
#include "dataplane/port_concept.h"
#include "lib/base/time.h"
#include "lib/ipc/fd.h"
#include "lib/transport/core_types.h"
#include "lib/transport/roce/wire/bth.h"
#include "lib/transport/wire/network_header.h"

namespace ub {

struct UdpPortOptions {
  std::vector<wire::IpAddress> addresses;  // to bind, one socket each; at least one
  uint16_t wanted_port = wire::kUbUdpPort;
  bool port_required = false;    // true: fail if wanted_port is taken, instead of taking an ephemeral one
  uint32_t mtu = 0;              // payload bytes of a packet; 0: from the interfaces
  uint32_t loopback_mtu = 4096;  // with mtu 0 on a loopback interface: 4096 or 8192
  uint64_t send_buffer_bytes = 4U << 20;
  uint64_t receive_buffer_bytes = 4U << 20;
  uint8_t dscp = 0;  // that most frames have
  // Report the TOS of received packets; else it reads 0. Costs 5 % of a round trip, so it is off unless somebody
  // reads congestion marks.
  bool receive_tos = false;
};

struct UdpPortCounters {
  uint64_t tx_frames = 0;
  uint64_t tx_no_room = 0;           // tx_begin answered nullptr
  uint64_t tx_again = 0;             // flushes that left frames behind: socket buffer full
  uint64_t tx_drop_too_long = 0;     // EMSGSIZE: longer than the path takes
  uint64_t tx_drop_unreachable = 0;  // no route, no host, refused
  uint64_t tx_drop_bad_frame = 0;    // not IPv4/IPv6 UDP from one of our sockets
  uint64_t tx_drop_other = 0;
  uint64_t rx_frames = 0;
  uint64_t rx_drop_too_long = 0;  // longer than the port's MTU allows
  uint64_t rx_errors = 0;         // errors that a receive call reported (ICMP and others)
};

class UdpPort {
 public:
  UdpPort();
  ~UdpPort();
  UdpPort(const UdpPort&) = delete;
  UdpPort& operator=(const UdpPort&) = delete;

  // Opens and binds the sockets. False: a sentence in `*error`, nothing is open; `*taken`: another program has the
  // port. `bound`: sockets that have the wanted port already, at some of the addresses; they are taken from it.
  bool open(const UdpPortOptions&, std::string* error, bool* taken = nullptr,
            std::vector<ClaimSocket>* bound = nullptr);
  // Opens the sockets of RoCE, at the addresses of open(). `notice` hears of each address whose port 4791 somebody
  // else has: there is no RoCE there.
  using Notice = std::function<void(const std::string& sentence)>;
  void open_roce(const Notice& notice);
  bool has_roce(const wire::IpAddress&) const;
  // Opens a socket at one of the addresses of open(), with a port that the kernel chooses: a path of its own through
  // networks that choose a link by the ports of a packet.
  bool open_source_port(const wire::IpAddress&, uint16_t* port, std::string* error);
  const std::vector<wire::IpAddress>& addresses() const { return options_.addresses; }
  // Ports of ids (id_claims.h), at our addresses or others: what comes there is read now and then, and answered from
  // there. The owner of the Core.
  void listen(std::vector<ClaimSocket>);
  void stop_listening(uint16_t port);
  void close();
  bool is_open() const { return !sockets_.empty(); }

  uint16_t port() const { return port_; }  // of UB, host order, the same on all addresses
  uint32_t mtu() const { return mtu_; }    // payload bytes of a packet
  // For Core::add_link; then tell the port the number it got.
  LinkConfig link_config() const { return {mtu_, false, false, roce::kUdpPort, true}; }
  void set_link(uint32_t link) { link_ = link; }
  uint32_t link() const { return link_; }
  // Local end of a path from our address number `index` of the options.
  wire::Endpoint local_endpoint(size_t index) const { return {sockets_[index].ip, port_}; }

  // ---- Port (port.h) ----
  size_t rx_burst(RxFrame* out, size_t room);
  // Something may have come to a port of ids.
  void look_at_rare() { until_rare_ = 1; }
  void rx_release() {}
  std::byte* tx_begin(uint32_t link, size_t bytes);
  void tx_commit(uint32_t link, std::byte* frame, size_t bytes);
  void tx_abort(uint32_t link, std::byte* frame);
  void tx_flush(Instant now);
  // Returns false always: frames that wait already make their descriptor readable at once.
  bool prepare_sleep();
  void finish_sleep();
  void fds(std::vector<int>&) const;  // rare_fd() first, then the sockets
  // The main sockets ring no longer for want of room, or do again. unmute() may be called again if it was false: no
  // memory.
  void mute();
  bool unmute();
  // Readable when a datagram came to a port of ids, or when a full socket has room again.
  int rare_fd() const { return epoll_.get(); }

  const UdpPortCounters& counters() const { return counters_; }
  bool has_unsent() const { return queued_ != 0; }

 private:
  static constexpr size_t kTxSlots = 64;
  static constexpr size_t kRxSlots = kBurst;
  // Worst headers in front of, and trailers behind, a payload: Ethernet 14, IPv6 40, UDP 8, UB and ICRC.
  static constexpr size_t kFrameOverhead = 14 + 300;
  static constexpr size_t kNetRoom = 64;  // room for Ethernet, IPv6 and UDP headers in front of a received payload

  struct Socket {
    ipc::Fd fd;
    wire::IpAddress ip;
    uint16_t port = 0;
    bool v6 = false;
    uint16_t queue[kTxSlots];  // committed slots in order
    uint32_t queue_count = 0;
    bool busy = false;   // the last receive found something
    uint32_t armed = 0;  // what prepare_sleep() asked for last
  };
  struct Buffers;  // slots and the kernel's message headers

  bool open_all(std::string* error, bool* taken, std::vector<ClaimSocket>* bound);
  bool open_sockets(uint16_t port, bool* taken, std::string* error, std::vector<ClaimSocket>* bound);
  static bool take_bound(Socket&, uint16_t port, std::vector<ClaimSocket>* bound);
  bool open_socket(Socket&, uint16_t port, bool* taken, std::string* error);
  bool set_options(Socket&, std::string* error, bool rare = false);
  bool watch(Socket&);
  bool watch(Socket&, std::string* error);
  void release_slot(uint32_t slot);
  void send_queue(Socket&);
  void send_queues();
  static void arm(const ipc::Fd& epoll, Socket&, uint32_t events, bool wants_room);
  size_t receive_rare(RxFrame* out, size_t room);
  Socket* socket_of(const wire::IpAddress& source, uint16_t port);
  void count_send_error(int error);
  size_t receive(Socket&, RxFrame* out, size_t room);
  void write_headers_v4(std::byte* frame, const Socket&, const sockaddr_in&, size_t payload, uint8_t tos) const;
  void write_headers_v6(std::byte* frame, const Socket&, const sockaddr_in6&, size_t payload, uint8_t tos) const;

  UdpPortOptions options_;
  std::vector<Socket> sockets_;  // of UB, in the order of the addresses, then of RoCE
  std::vector<Socket> rare_;     // of ids
  std::unique_ptr<Buffers> buffers_;
  uint8_t socket_tos_ = 0;   // what leaves without a control message has this byte of IP: DSCP and ECN
  uint64_t free_slots_ = 0;  // bit per transmit slot
  uint32_t queued_ = 0;      // committed, not sent
  bool receive_tos_ = false;
  bool blocked_ = false;      // the last send found the socket buffer full
  uint32_t next_socket_ = 0;  // whose turn it is to be received from
  uint32_t link_ = 0;
  uint32_t mtu_ = 1024;
  uint16_t port_ = 0;
  size_t slot_bytes_ = 0;
  static constexpr uint32_t kRareTurn = 256;  // receives, until the rare sockets are looked at
  uint32_t until_rare_ = kRareTurn;
  ipc::Fd epoll_;
  ipc::Fd rare_epoll_;
  UdpPortCounters counters_;
};

}  // namespace ub
