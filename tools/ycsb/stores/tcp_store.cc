// SPDX-License-Identifier: Apache-2.0
//
// -db tcp: the client of urma_ycsb --serve-tcp. All requests that are started between two polls leave together.
#include <cstring>
#include <deque>

#include "tools/ycsb/stores/backends.h"
#include "tools/ycsb/stores/server_address.h"
#include "tools/ycsb/stores/tcp_protocol.h"

namespace ub::ycsb {
namespace {

class TcpStore : public Store {
 public:
  TcpStore(const ServerAddress& address, bool one_field)
      : address_(address), stream_(address.connect()), one_field_(one_field) {
    Request greeting;  // a scan of no records
    greeting.operation = Operation::kScan;
    TcpStore::start(greeting);
    Completion greeted;
    address.greet(stream_, [&] { return take_answer(&greeted); });
    if (greeted.status != Status::kOk || !greeted.record.empty()) throw address.other_protocol("another answer came");
  }

  void start(const Request& request) override {
    const RequestHead head = {static_cast<uint32_t>(carried(request).size()),
                              static_cast<uint16_t>(request.key.size()),
                              request.operation,
                              static_cast<uint8_t>(one_field_),
                              request.read_field,
                              request.scan_length};
    stream_.out()
        .append(reinterpret_cast<const char*>(&head), sizeof head)
        .append(request.key)
        .append(carried(request));
    in_flight_.push_back(request.tag);
  }

  size_t poll(std::span<Completion> done, uint64_t wait_ns) override {
    stream_.exchange(wait_ns);
    size_t count = 0;
    while (count < done.size() && take_answer(&done[count])) ++count;
    return count;
  }

  std::string last_error() const override { return "the server does not know the operation"; }

 private:
  static std::string_view carried(const Request& request) {
    const bool writes = request.operation == Operation::kInsert || request.operation == Operation::kUpdate;
    return writes ? request.record : std::string_view();
  }

  // False: no answer has come as a whole.
  bool take_answer(Completion* done) {
    const std::string_view in = stream_.in();
    AnswerHead head;
    if (in.size() < sizeof head) return false;
    std::memcpy(&head, in.data(), sizeof head);
    if (in.size() - sizeof head < head.bytes) return false;
    if (in_flight_.empty()) throw address_.other_protocol("an answer came that belongs to no request");
    *done = {in_flight_.front(), head.status, in.substr(sizeof head, head.bytes)};
    in_flight_.pop_front();
    stream_.consume(sizeof head + head.bytes);
    return true;
  }

  const ServerAddress& address_;
  ByteStream stream_;
  bool one_field_;
  std::deque<uint32_t> in_flight_;  // tags
};

class TcpBackend : public Backend {
 public:
  TcpBackend(const Properties& p, const Spec& spec)
      : address_(p, "tcp", kDefaultPort), one_field_(spec.field_count == 1) {}

  std::unique_ptr<Store> connect(uint32_t) override { return std::make_unique<TcpStore>(address_, one_field_); }

 private:
  ServerAddress address_;
  bool one_field_;
};

}  // namespace

std::unique_ptr<Backend> open_tcp(const Properties& p, const Spec& spec) {
  return std::make_unique<TcpBackend>(p, spec);
}

}  // namespace ub::ycsb
