// SPDX-License-Identifier: Apache-2.0
//
// -db memcached, by the text protocol: a record is one value. It is spoken here and not by libmemcached, because that
// library waits for the answer to each request, or to a batch of reads, and so cannot have a window of them in flight.
#include <fmt/format.h>

#include <charconv>
#include <deque>

#include "tools/ycsb/stores/backends.h"
#include "tools/ycsb/stores/server_address.h"

namespace ub::ycsb {
namespace {

constexpr std::string_view kLineEnd = "\r\n", kReadEnd = "END\r\n";

class MemcachedStore : public Store {
 public:
  explicit MemcachedStore(const ServerAddress& address) : address_(address), stream_(address.connect()) {
    stream_.out() = "version\r\n";
    address.greet(stream_, [&] { return stream_.in().find(kLineEnd) != std::string_view::npos; });
    const std::string_view line = stream_.in().substr(0, stream_.in().find(kLineEnd));
    if (!line.starts_with("VERSION ")) throw address.other_protocol(line);
    stream_.consume(line.size() + kLineEnd.size());
  }

  void start(const Request& request) override {
    if (request.operation == Operation::kRead) {
      stream_.out().append("get ").append(request.key).append(kLineEnd);
    } else {
      stream_.out().append(request.operation == Operation::kInsert ? "set " : "replace ").append(request.key);
      stream_.out().append(" 0 0 ").append(fmt::format_int(request.record.size()).c_str()).append(kLineEnd);
      stream_.out().append(request.record).append(kLineEnd);
    }
    in_flight_.push_back(request.tag);
  }

  size_t poll(std::span<Completion> done, uint64_t wait_ns) override {
    stream_.exchange(wait_ns);
    size_t count = 0;
    while (count < done.size() && take_answer(&done[count])) ++count;
    return count;
  }

  std::string last_error() const override { return last_error_; }

 private:
  // False: no answer has come as a whole.
  bool take_answer(Completion* done) {
    const std::string_view in = stream_.in();
    const size_t end = in.find(kLineEnd);
    if (end == std::string_view::npos) return false;
    const std::string_view line = in.substr(0, end);
    size_t size = end + kLineEnd.size();
    done->status = Status::kOk;
    done->record = {};
    if (line.starts_with("VALUE ")) {
      const size_t bytes = value_bytes(line);
      if (in.size() < size + bytes + kLineEnd.size() + kReadEnd.size()) return false;
      done->record = in.substr(size, bytes);
      size += bytes + kLineEnd.size() + kReadEnd.size();
    } else if (line == "END" || line == "NOT_STORED") {
      done->status = Status::kNotFound;
    } else if (line != "STORED") {
      done->status = Status::kFailed;
      last_error_ = line;
    }
    if (in_flight_.empty()) throw address_.other_protocol("an answer came that belongs to no request");
    done->tag = in_flight_.front();
    in_flight_.pop_front();
    stream_.consume(size);
    return true;
  }

  // Of "VALUE key flags bytes".
  size_t value_bytes(std::string_view line) const {
    const std::string_view digits = line.substr(line.rfind(' ') + 1);
    size_t bytes = 0;
    if (std::from_chars(digits.data(), digits.data() + digits.size(), bytes).ptr != digits.data() + digits.size()) {
      throw address_.other_protocol(line);
    }
    return bytes;
  }

  const ServerAddress& address_;
  ByteStream stream_;
  std::deque<uint32_t> in_flight_;  // tags, in the order of the answers
  std::string last_error_;
};

class MemcachedBackend : public Backend {
 public:
  explicit MemcachedBackend(const Properties& p) : address_(p, "memcached", 11211) {}

  std::unique_ptr<Store> connect(uint32_t) override { return std::make_unique<MemcachedStore>(address_); }

 private:
  ServerAddress address_;
};

}  // namespace

std::unique_ptr<Backend> open_memcached(const Properties& p, const Spec&) {
  return std::make_unique<MemcachedBackend>(p);
}

}  // namespace ub::ycsb
