// SPDX-License-Identifier: Apache-2.0
//
// perftest's ib_{send,write,read,atomic}_{lat,bw}, with its exchange of version 6.06, one queue pair and one size.
//
// Its data is random but the same in each message from the same place, and it compares nothing. So we compare what
// comes with what came before from that place, see that nothing lies where nothing was to be written, and that atomics
// were executed once each.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "tools/common/tool_error.h"
#include "tools/roce_peer/conversation.h"
#include "tools/roce_peer/tests.h"

namespace ub::roce_peer {
namespace {

constexpr uint32_t kCycle = 4096;    // small messages come from, and go to, places that go round in so many bytes
constexpr uint32_t kCacheLine = 64;  // the distance of two places is a multiple of this
constexpr uint8_t kReads = 16;       // READs and atomics in flight, either way
constexpr uint32_t kSyncs = 3;       // lines after the first ones, before the test runs
constexpr uint64_t kUntouched = UINT64_MAX;
constexpr double kLastWords = 5;  // seconds for a tool that says no more to end

[[noreturn]] void wrong(const std::string& sentence) { throw tools::ToolError(tools::kExitWrongData, sentence); }

class Perftest {
 public:
  explicit Perftest(const Options& o)
      : o_(o),
        endpoint_(o, o.unreliable ? verbs::QpType::kUc : verbs::QpType::kRc),
        target_(endpoint_.domain(), 2 * size_t{area()}, kAllAccess),
        local_(endpoint_.domain(), size_t{slots()} * step(), verbs::kLocalWrite),
        talk_(o, [this] { endpoint_.turn(); }) {
    fill_pattern(target_.bytes, kUntouched);
    if (is_atomic()) std::fill_n(target_.bytes.begin(), area(), std::byte{0});
    fill_pattern(local_.bytes, 0);
    fill_pattern(local_send_.bytes, 0);
    // The peer may write as soon as it has met us.
    if (o.test == Test::kWriteLat) target_.bytes[o.size - 1] = std::byte{0};
    endpoint_.to_init(kAllAccess);
    if (receives()) {
      for (uint32_t i = 0; i < o.rx_depth && i < slots(); ++i) post_receive(i);
    }
    meet();
  }

  std::string run() {
    if (o_.serves()) {
      serve();
    } else {
      request();
    }
    if (o_.test == Test::kWriteLat) {
      talk_.wait_for_end(kLastWords);
    } else {
      if (o_.is_bandwidth() && !is_send()) talk_.swap_report(o_.size, o_.iterations);
      talk_.swap(ours_);
      talk_.finish_perftest();
      endpoint_.linger();
    }
    check_target();
    return fmt::format("{} requests of {} bytes; {}", o_.iterations, o_.size, endpoint_.counters());
  }

 private:
  static constexpr uint32_t kAllAccess =
      verbs::kLocalWrite | verbs::kRemoteWrite | verbs::kRemoteRead | verbs::kRemoteAtomic;

  bool is_atomic() const { return o_.test == Test::kAtomicLat || o_.test == Test::kAtomicBw; }
  bool is_send() const { return o_.test == Test::kSendLat || o_.test == Test::kSendBw; }
  bool receives() const { return is_send() && (o_.serves() || !o_.is_bandwidth()); }
  // Distance of two places, bytes that they all take, and how many there are.
  uint32_t step() const { return (o_.size + kCacheLine - 1) / kCacheLine * kCacheLine; }
  uint32_t area() const { return std::max(step(), kCycle); }
  uint32_t places() const { return o_.is_bandwidth() && o_.size <= kCycle / 2 ? kCycle / step() : 1; }
  // Messages of ours and receives are kept apart as far as 64 MiB go.
  uint32_t slots() const {
    const uint32_t room = std::max((64u << 20) / step(), 2u);
    return std::min(std::max(o_.tx_depth, o_.rx_depth), room);
  }

  void meet() {
    const uint8_t mtu = talk_.start_perftest(endpoint_.port_mtu());
    ours_ = {0,
             static_cast<uint16_t>(o_.test >= Test::kReadLat ? kReads : 1),
             endpoint_.qp().qp_num(),
             endpoint_.psn(),
             target_.region->rkey(),
             target_.address(),
             endpoint_.gid(),
             0};
    theirs_ = talk_.swap(ours_);
    reads_ = static_cast<uint8_t>(std::clamp<uint16_t>(theirs_.out_reads, 1, kReads));
    endpoint_.connect({theirs_.gid, theirs_.qpn, theirs_.psn, mtu, reads_}, kReads);
    for (uint32_t i = 0; i < kSyncs; ++i) talk_.swap(ours_);
  }

  // ---- what comes --------------------------------------------------------------------------------------------------
  void post_receive(uint64_t slot) { endpoint_.post_receive(slot, local_.range(slot * step(), o_.size)); }

  void take_message(uint32_t number) {
    const verbs::WorkCompletion wc = endpoint_.wait_for_receive();
    if (wc.byte_len != o_.size) wrong(fmt::format("message {} has {} bytes, not {}", number, wc.byte_len, o_.size));
    const std::span<const std::byte> data(&local_.bytes[wc.wr_id * step()], o_.size);
    auto [seen, is_new] = seen_.try_emplace(number % places(), data.begin(), data.end());
    if (!is_new) compare(data, seen->second, fmt::format("message {}", number));
    post_receive(wc.wr_id);
  }

  // Whatever was written lies in a place of its own, and around it nothing has changed.
  void check_target() {
    std::vector<std::byte> before(target_.bytes.size());
    fill_pattern(before, kUntouched);
    const bool written = o_.test == Test::kWriteLat || (o_.test == Test::kWriteBw && o_.serves());
    if (is_atomic() && o_.serves()) check_sum();
    for (size_t at = 0; at < before.size(); at += step()) {
      const size_t rest = std::min<size_t>(step(), before.size() - at);
      if (is_atomic() && at < area()) continue;
      const size_t used = written && at < std::min(places(), o_.iterations) * step() ? o_.size : 0;
      compare(std::span(target_.bytes).subspan(at + used, rest - used),
              std::span<const std::byte>(before).subspan(at + used, rest - used),
              fmt::format("memory that nobody was to write, from byte {} on,", at + used));
      if (used > 8 && first_difference(std::span(target_.bytes).subspan(at, used),
                                       std::span<const std::byte>(before).subspan(at, used)) == used) {
        wrong(fmt::format("nothing was written at byte {}", at));
      }
    }
  }

  // Each fetch-and-add adds one, wherever it goes: none is lost, none is executed twice.
  void check_sum() {
    uint64_t sum = 0;
    for (size_t at = 0; at < area(); at += sizeof sum) {
      uint64_t word;
      std::memcpy(&word, &target_.bytes[at], sizeof word);
      sum += word;
    }
    if (sum != o_.iterations) wrong(fmt::format("{} atomics were executed {} times", o_.iterations, sum));
  }

  // ---- in the roles ------------------------------------------------------------------------------------------------
  void serve() {
    if (o_.test == Test::kWriteLat) return take_turns_writing();
    if (o_.test == Test::kSendLat) {
      for (uint32_t i = 0; i < o_.iterations; ++i) {
        take_message(i);
        send_one(i);
      }
    }
    if (o_.test == Test::kSendBw) {
      for (uint32_t i = 0; i < o_.iterations; ++i) take_message(i);
    }
    while (!talk_.something_came()) endpoint_.turn();  // our NIC does the rest
  }

  void request() {
    switch (o_.test) {
      case Test::kWriteLat:
        return take_turns_writing();
      case Test::kSendLat:
        for (uint32_t i = 0; i < o_.iterations; ++i) {
          send_one(i);
          take_message(i);
        }
        return;
      default:
        return flood();
    }
  }

  verbs::SendRequest request_of(uint32_t number, const Sge* where) const {
    verbs::SendRequest r;
    r.wr_id = number;
    r.sg_list = std::span(where, 1);
    r.remote_addr = theirs_.address;
    r.rkey = theirs_.rkey;
    switch (o_.test) {
      case Test::kWriteBw:
      case Test::kWriteLat:
        r.opcode = verbs::WrOpcode::kRdmaWrite;
        break;
      case Test::kReadBw:
      case Test::kReadLat:
        r.opcode = verbs::WrOpcode::kRdmaRead;
        break;
      case Test::kAtomicBw:
      case Test::kAtomicLat:
        r.opcode = verbs::WrOpcode::kAtomicFetchAndAdd;
        r.compare_add = 1;
        break;
      default:
        break;
    }
    return r;
  }

  void send_one(uint32_t number) {
    const Sge where = local_send_.range(0, o_.size);
    endpoint_.post_send(request_of(number, &where));
    endpoint_.wait_for_send();
  }

  // Many at a time, or one after the other.
  void flood() {
    const uint32_t depth = o_.is_bandwidth() ? std::min(o_.tx_depth, slots()) : 1;
    uint32_t posted = 0;
    for (uint32_t done = 0; done < o_.iterations; ++done) {
      for (; posted < o_.iterations && posted - done < depth; ++posted) {
        const Sge where = local_.range(size_t{posted % (is_send() ? places() : slots())} * step(), o_.size);
        endpoint_.post_send(request_of(posted, &where));
      }
      const verbs::WorkCompletion wc = endpoint_.wait_for_send();
      if (wc.wr_id != done) wrong(fmt::format("request {} completed before request {}", wc.wr_id, done));
      if (o_.test >= Test::kReadLat) check_answer(done);
    }
  }

  void check_answer(uint32_t number) {
    const std::span<const std::byte> data(&local_.bytes[size_t{number % slots()} * step()], o_.size);
    if (!is_atomic()) {
      auto [seen, is_new] = seen_.try_emplace(0, data.begin(), data.end());
      if (!is_new) compare(data, seen->second, fmt::format("READ {}", number));
      return;
    }
    uint64_t value;
    std::memcpy(&value, data.data(), sizeof value);
    if (number == 0) first_value_ = value;
    if (value != first_value_ + number) {
      wrong(fmt::format("atomic {} found {} where {} must be", number, value, first_value_ + number));
    }
  }

  // Both write in turn, the server first; the last byte counts.
  void take_turns_writing() {
    volatile std::byte* const last = &target_.bytes[o_.size - 1];
    for (uint32_t i = 0; i < o_.iterations; ++i) {
      const uint32_t awaited = o_.serves() ? i : i + 1;
      while (awaited != 0 && *last != static_cast<std::byte>(awaited)) endpoint_.turn();
      fill_pattern(local_send_.bytes, i);
      local_send_.bytes[o_.size - 1] = static_cast<std::byte>(i + 1);
      const Sge where = local_send_.range(0, o_.size);
      endpoint_.post_send(request_of(i, &where));
      if (i + 1 < o_.iterations) endpoint_.wait_for_send();
    }
    while (*last != static_cast<std::byte>(o_.iterations)) endpoint_.turn();
    endpoint_.wait_for_last_send();
  }

  const Options& o_;
  Endpoint endpoint_;
  Buffer target_;  // what the other side writes to and reads from; the second half is for nobody
  Buffer local_;   // receives and answers
  Buffer local_send_{endpoint_.domain(), o_.size, verbs::kLocalWrite};
  Conversation talk_;
  PerftestLine ours_, theirs_;
  uint8_t reads_ = 1;
  std::map<uint32_t, std::vector<std::byte>> seen_;  // by place
  uint64_t first_value_ = 0;
};

}  // namespace

std::string run_perftest(const Options& o) { return Perftest(o).run(); }

}  // namespace ub::roce_peer
