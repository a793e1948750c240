// SPDX-License-Identifier: Apache-2.0
//
// Strangers knock at a NIC: set-up records of another version, of another partition, with impossible
// parameters, or garbage, sent by a plain UDP socket. The NIC rejects what can be answered (REJ), is silent
// about the rest, and works as before. And the other way round: our own set-up meets a peer that speaks
// another version only.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "lib/transport/wire/control_record.h"
#include "lib/transport/wire/icrc.h"
#include "lib/transport/wire/network_header.h"
#include "lib/transport/wire/transaction_packet.h"
#include "lib/transport/wire/utp_header.h"

#include "tests/conformance/world.h"

namespace {

using ub::wire::ControlRecord;
using ub::wire::Drop;
using ub::wire::Endpoint;
using ub::wire::IpAddress;
using ub::wire::RecordReason;
using ub::wire::RecordType;

constexpr uint64_t kIncarnation = 0x1122334455667788;
constexpr int kNoAnswerMs = 150;

sockaddr_in loopback_address(uint16_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

Endpoint endpoint(uint16_t port) { return {IpAddress::from_v4(INADDR_LOOPBACK), port}; }

// A UDP socket that speaks records.
class Stranger {
 public:
  Stranger() : fd_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    // As the NICs do: no IP ID, which the ICRC covers.
    int dont_fragment = IP_PMTUDISC_DO;
    setsockopt(fd_, IPPROTO_IP, IP_MTU_DISCOVER, &dont_fragment, sizeof dont_fragment);
    sockaddr_in address = loopback_address(0);
    socklen_t bytes = sizeof address;
    need(bind(fd_, reinterpret_cast<sockaddr*>(&address), bytes) == 0, "bind");
    getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &bytes);
    port_ = ntohs(address.sin_port);
  }
  ~Stranger() { close(fd_); }

  uint16_t port() const { return port_; }

  // `bytes` of the record are sent, filled up with zeros; `damage` is mixed into the ICRC.
  void send(uint16_t to, const ControlRecord& record, size_t bytes = ub::wire::kControlRecordSize,
            uint32_t damage = 0) {
    std::byte text[ub::wire::kControlRecordSize];
    write_control_record(record, text);
    std::vector<std::byte> payload(bytes);
    memcpy(payload.data(), text, bytes < sizeof text ? bytes : sizeof text);
    send_payload(to, payload, damage);
  }

  void send_payload(uint16_t to, const std::vector<std::byte>& payload, uint32_t damage = 0) {
    ub::wire::NetTemplate headers;
    headers.init({}, {}, endpoint(port_), endpoint(to), 0);
    ub::wire::TaPacket ta;
    ta.req = ub::wire::Btah{};
    ta.has_mt = ta.has_ofst = true;
    ta.mt = {0, ub::wire::kTcTypeQueue, 0};
    ta.ofst.offset_kib = 0;
    std::byte frame[4096];
    size_t tp_bytes = ub::wire::UtpHeader::kSize + ub::wire::request_header_size(ub::wire::TaOpcode::kSend, {}) +
                      payload.size() + ub::wire::kIcrcSize;
    std::byte* udp_payload = frame + headers.write(frame, tp_bytes, ub::wire::kEcnNotCapable);
    std::byte* at = udp_payload;
    ub::wire::UtpHeader{}.write(at);
    at += ub::wire::UtpHeader::kSize;
    at += write_transaction_headers(ta, at);
    if (!payload.empty()) memcpy(at, payload.data(), payload.size());
    at += payload.size();
    const std::byte* l3 = frame + ub::wire::kEthSize;
    ub::wire::icrc_store(at, ub::wire::icrc_compute(l3, static_cast<size_t>(at - l3), false) ^ damage);
    sockaddr_in address = loopback_address(to);
    sendto(fd_, udp_payload, tp_bytes, 0, reinterpret_cast<sockaddr*>(&address), sizeof address);
  }

  struct Heard {
    ControlRecord record;
    uint16_t from;
  };
  // The next record; none after that time.
  std::optional<Heard> hear(int ms) {
    pollfd fd{fd_, POLLIN, 0};
    if (poll(&fd, 1, ms) != 1) return std::nullopt;
    std::byte frame[16384], text[16000];
    sockaddr_in from = {};
    socklen_t bytes = sizeof from;
    ssize_t length = recvfrom(fd_, text, sizeof text, 0, reinterpret_cast<sockaddr*>(&from), &bytes);
    if (length <= 0) return std::nullopt;
    // The packet as it was on the wire.
    ub::wire::NetTemplate headers;
    headers.init({}, {}, endpoint(ntohs(from.sin_port)), endpoint(port_), 0);
    size_t head = headers.write(frame, static_cast<size_t>(length), ub::wire::kEcnNotCapable);
    memcpy(frame + head, text, static_cast<size_t>(length));
    ub::wire::NetHeader net;
    ub::wire::UtpHeader utp;
    ub::wire::TaPacket ta;
    Heard heard{{}, ntohs(from.sin_port)};
    bool good = parse_network({frame, head + static_cast<size_t>(length)}, net) == Drop::kNone && icrc_matches(net) &&
                ub::wire::UtpHeader::read(net.tph, net.tp_size(), utp) == Drop::kNone &&
                parse_transaction(net.tph + ub::wire::UtpHeader::kSize, net.end, utp.padding, false, ta) == Drop::kNone;
    if (good) {
      Drop drop = read_control_record({ta.payload, ta.payload_len}, heard.record);
      good = drop == Drop::kNone;
    }
    check_true("the answer is a good record", good);
    return heard;
  }

 private:
  int fd_;
  uint16_t port_ = 0;
};

// ---- the cases --------------------------------------------------------------------------------------------

struct Scene {
  urma_context_t* context;
  remote* peer;  // loopback
  queue good;
  urma_target_seg_t* memory;
  uint16_t port;
};

alignas(8) char words[16];

ControlRecord request(const Scene& scene, const Stranger& stranger, uint32_t attempt) {
  ControlRecord r;
  r.type = RecordType::kReq;
  r.sender_incarnation = kIncarnation;
  r.attempt = attempt;
  r.sender_tpn = 0x10001;
  r.selective = true;
  r.mtu = 1024;
  r.rcv_window = 512;
  r.upi = 1;
  r.sender_eid.bytes = endpoint(0).ip.bytes;
  r.wanted_eid.bytes = endpoint(0).ip.bytes;
  r.sender_uasid = 0x660000u | stranger.port();
  r.wanted_uasid = scene.context->uasid;
  return r;
}

void good_write(const Scene& scene) {
  static uint64_t number = 0;
  ++number;
  memcpy(words, &number, 8);
  ::request w = {};
  w.op = URMA_OPC_WRITE;
  w.to = scene.peer->work;
  w.local = scene.memory;
  w.remote = scene.peer->all;
  w.here = reinterpret_cast<uint64_t>(words);
  w.there = scene.peer->all->seg.ubva.va;
  w.bytes = 8;
  queue q = scene.good;
  check_status("a good WRITE afterwards", run(&q, &w), URMA_CR_SUCCESS);
  w.op = URMA_OPC_READ;
  w.here += 8;
  check_status("a good READ afterwards", run(&q, &w), URMA_CR_SUCCESS);
  check_true("the good READ brings what was written", memcmp(words, words + 8, 8) == 0);
}

void check_rejected(const char* what, Stranger& stranger, uint32_t attempt, RecordReason reason) {
  std::optional<Stranger::Heard> heard = stranger.hear(2000);
  if (!heard) return fail_case(what, "no answer", "REJ");
  const ControlRecord& r = heard->record;
  if (r.type != RecordType::kRej) return fail_case(what, record_type_name(r.type), "REJ");
  if (r.reason != reason) fail_case(what, record_reason_name(r.reason), record_reason_name(reason));
  check_number("version of the answer", r.version, ub::wire::kControlRecordVersion);
  check_number("attempt of the answer", r.attempt, attempt);
  check_true("incarnation in the answer", r.receiver_incarnation == kIncarnation);
}

void check_silent(const char* what, Stranger& stranger) {
  if (stranger.hear(kNoAnswerMs)) fail_case(what, "an answer", "silence");
}

// Bytes 0-27 of a record never change; its length may.
void another_version(const Scene& scene) {
  Stranger stranger;
  uint32_t attempt = 100;
  for (size_t bytes : {size_t{96}, size_t{28}, size_t{40}, size_t{500}}) {
    for (uint8_t version : {uint8_t{0}, uint8_t{2}, uint8_t{9}}) {
      ControlRecord r = request(scene, stranger, ++attempt);
      r.version = version;
      stranger.send(scene.port, r, bytes);
      check_rejected("REQ of another version", stranger, attempt, RecordReason::kParameter);
    }
  }
  check_silent("more than one answer", stranger);
}

// Two versions that reject each other's rejections would never stop.
void other_records_of_another_version(const Scene& scene) {
  Stranger stranger;
  for (RecordType type : {RecordType::kRep, RecordType::kConf, RecordType::kRej, RecordType::kClose,
                          RecordType::kClosed, RecordType::kPing, RecordType::kPong, RecordType::kReset}) {
    ControlRecord r = request(scene, stranger, 200);
    r.version = 2;
    r.type = type;
    stranger.send(scene.port, r);
  }
  check_silent("records of another version that are no REQ", stranger);
}

void garbage(const Scene& scene) {
  Stranger stranger;
  ControlRecord r = request(scene, stranger, 300);
  stranger.send(scene.port, r, 96, 1);
  check_silent("a wrong ICRC", stranger);
  r.version = 2;
  stranger.send(scene.port, r, 96, 0x80000000);
  check_silent("a wrong ICRC and another version", stranger);
  stranger.send(scene.port, r, 27);
  check_silent("too short for a record", stranger);
  r.version = 1;
  stranger.send(scene.port, r, 95);
  check_silent("a byte short", stranger);
  r.version = 'x' - '0';
  stranger.send(scene.port, r);
  check_silent("a version that is no digit", stranger);
  stranger.send_payload(scene.port, std::vector<std::byte>(96, std::byte{0xff}));
  stranger.send_payload(scene.port, {});
  check_silent("no record at all", stranger);
}

void wrong_partition_or_instance(const Scene& scene) {
  Stranger stranger;
  ControlRecord r = request(scene, stranger, 400);
  r.upi = 2;
  stranger.send(scene.port, r);
  check_rejected("another UPI", stranger, 400, RecordReason::kUnknownEntity);
  r = request(scene, stranger, 401);
  r.wanted_uasid ^= 0x10000;
  stranger.send(scene.port, r);
  check_rejected("another uasid", stranger, 401, RecordReason::kUnknownEntity);
  r = request(scene, stranger, 402);
  r.wanted_eid.bytes[15] ^= 2;
  stranger.send(scene.port, r);
  check_rejected("another EID", stranger, 402, RecordReason::kUnknownEntity);
}

void impossible_parameters(const Scene& scene) {
  Stranger stranger;
  uint32_t attempt = 500;
  for (uint16_t mtu : {0, 512, 1500, 16384}) {
    ControlRecord r = request(scene, stranger, ++attempt);
    r.mtu = mtu;
    stranger.send(scene.port, r);
    check_rejected("an MTU that is none", stranger, attempt, RecordReason::kParameter);
  }
  ControlRecord r = request(scene, stranger, ++attempt);
  r.sender_tpn = 0;
  stranger.send(scene.port, r);
  check_rejected("TPN 0", stranger, attempt, RecordReason::kParameter);
}

// So that the rejections above are no accident: the same REQ, in order, is answered.
void good_request(const Scene& scene) {
  Stranger stranger;
  stranger.send(scene.port, request(scene, stranger, 600));
  std::optional<Stranger::Heard> heard = stranger.hear(2000);
  if (!heard) return fail_case("a good REQ", "no answer", "REP");
  if (heard->record.type != RecordType::kRep)
    return fail_case("a good REQ", record_type_name(heard->record.type), "REP");
  check_number("attempt of the answer", heard->record.attempt, 600);
}

std::mutex log_mutex;  // the library's own thread writes, too
std::string log_text;

void keep_log(int, char* message) {
  std::lock_guard lock(log_mutex);
  log_text += message;
}

void check_log(const char* what) {
  std::lock_guard lock(log_mutex);
  if (log_text.find(what) == std::string::npos) fail_case("the log", log_text.c_str(), what);
}

// Our own set-up meets a peer that rejects it in the words of another version, or of ours.
void rejected_by_another_version(const Scene& scene) {
  for (uint8_t version : {uint8_t{1}, uint8_t{2}}) {
    log_text.clear();
    check_number("urma_register_log_func", urma_register_log_func(keep_log), URMA_SUCCESS);
    Stranger stranger;
    urma_jetty_id_t id = scene.peer->offer.work;
    id.uasid = 0x660000u | stranger.port();
    urma_target_jetty_t* target = import_jetty(scene.context, id, 0, URMA_TM_RM);
    queue q = open_queue(scene.context, {});
    ::request s = {};
    s.op = URMA_OPC_SEND;
    s.to = target;
    s.local = scene.memory;
    s.here = reinterpret_cast<uint64_t>(words);
    s.bytes = 8;
    check_number("post", post(&q, &s), URMA_SUCCESS);
    double begin = now(), took = 0;
    int status = NOTHING;
    while (status == NOTHING && (took = now() - begin) < 10) {
      if (std::optional<Stranger::Heard> heard = stranger.hear(1)) {
        ControlRecord r = heard->record;
        std::swap(r.sender_incarnation, r.receiver_incarnation);
        r.sender_incarnation = kIncarnation;
        std::swap(r.sender_tpn, r.receiver_tpn);
        std::swap(r.sender_eid, r.wanted_eid);
        std::swap(r.sender_uasid, r.wanted_uasid);
        r.version = version;
        r.type = RecordType::kRej;
        r.reason = RecordReason::kParameter;
        stranger.send(heard->from, r);
      }
      status = wait_completion(&q, 0, nullptr);
    }
    check_status("SEND", status, URMA_CR_ACK_TIMEOUT_ERR);
    check_true(version == 1 ? "it ends at once" : "it ends within 5 s", took < (version == 1 ? 1 : 5));
    check_log("127.0.0.1 rejected the set-up of a channel");
    if (version != 1) check_log("it speaks version 2 of the set-up messages, we version 1");
    close_queue(&q);
    check_number("urma_unimport_jetty", urma_unimport_jetty(target), URMA_SUCCESS);
    check_number("urma_unregister_log_func", urma_unregister_log_func(), URMA_SUCCESS);
  }
}

struct Case {
  const char* name;
  void (*run)(const Scene&);
};
constexpr Case kCases[] = {
    {"REQ of another version", another_version},
    {"other records of another version", other_records_of_another_version},
    {"garbage", garbage},
    {"wrong partition or instance", wrong_partition_or_instance},
    {"impossible parameters", impossible_parameters},
    {"good REQ", good_request},
    {"rejected by another version", rejected_by_another_version},
};

}  // namespace

int main() {
  alarm(100);
  setenv("SOFTUB_DEVICE_EIDS", "127.0.0.1", 1);
  setenv("SOFTUB_PORT_KINDS", "udp", 1);
  Scene scene = {};
  scene.context = open_nic();
  scene.peer = start_peer(scene.context, true);
  scene.good = open_queue(scene.context, {});
  scene.memory = register_memory(scene.context, words, sizeof words, URMA_ACCESS_LOCAL_ONLY);
  scene.port = static_cast<uint16_t>(scene.context->uasid & 0xffff);
  int failed = 0;
  for (const Case& c : kCases) {
    begin_case(c.name);
    c.run(scene);
    good_write(scene);
    failed += !end_case();
  }
  begin_case("tear-down");
  stop_peer(scene.peer);
  close_queue(&scene.good);
  check_number("urma_unregister_seg", urma_unregister_seg(scene.memory), URMA_SUCCESS);
  check_number("urma_delete_context", urma_delete_context(scene.context), URMA_SUCCESS);
  check_number("urma_uninit", urma_uninit(), URMA_SUCCESS);
  failed += !end_case();
  printf("%d failed\n", failed);
  return failed != 0;
}
