// SPDX-License-Identifier: Apache-2.0
//
// One of several processes that all talk to each other (mesh.py starts them): each has jettys of one context, which
// share a receive queue, and from each of them one request at a time goes to a jetty of any other process, chosen at
// random. WRITEs are read back and compared; atomics add one to a counter of the target; SENDs say who sends what to
// whom. At the end everybody tells how much it sent to whom, and each compares that with what it got.
//
//   mesh --directory DIR --index I --count N --jettys J --seconds S
//
// In DIR, one file per process and step: its address (once all jettys are there), its sums (once nothing is under way).
// Ends with 0 and a line of sums, or with 1 and a sentence.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <urma_api.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr uint32_t kSlot = 256;    // bytes that a jetty may write at each other process
constexpr uint32_t kMessage = 64;  // of a SEND
constexpr uint32_t kReceives = 2048;
constexpr double kPatience = 30;  // seconds for a step of all

struct Options {
  std::string directory;
  uint32_t index = 0, count = 2, jettys = 10;
  double seconds = 5;
};
Options options;

[[noreturn]] void die(const std::string& what) {
  fprintf(stderr, "mesh %u: %s (errno: %s)\n", options.index, what.c_str(), strerror(errno));
  _exit(1);
}
void need(bool condition, const std::string& what) {
  if (!condition) die(what);
}
double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// ---- files of all ----------------------------------------------------------------------------------------------

std::string path_of(const char* step, uint32_t index) {
  return options.directory + "/" + step + "." + std::to_string(index);
}
void publish(const char* step, const std::string& bytes) {
  const std::string path = path_of(step, options.index), part = path + ".part";
  std::ofstream(part, std::ios::binary) << bytes;
  need(rename(part.c_str(), path.c_str()) == 0, "cannot write " + path);
}
bool is_there(const char* step, uint32_t index) { return access(path_of(step, index).c_str(), R_OK) == 0; }
std::string read_all(const char* step, uint32_t index) {
  std::ifstream in(path_of(step, index), std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// ---- what travels ----------------------------------------------------------------------------------------------

// Of a process; behind it the ids of its jettys.
struct Address {
  urma_jetty_id_t first;
  urma_seg_t segment;
};

struct Message {
  uint32_t from, jetty, to, to_jetty;
  uint64_t number, check;
  uint64_t sum() const { return (number * 0x9e3779b97f4a7c15) ^ (uint64_t{from} << 48 | uint64_t{to} << 32 | jetty); }
};

// What a process did to each of the others.
struct Sums {
  std::vector<uint64_t> writes, adds, sends;
  explicit Sums(uint32_t count) : writes(count), adds(count), sends(count) {}
  std::string bytes() const {
    std::string out;
    for (const auto* part : {&writes, &adds, &sends})
      out.append(reinterpret_cast<const char*>(part->data()), part->size() * sizeof(uint64_t));
    return out;
  }
  void read(const std::string& bytes) {
    need(bytes.size() == 3 * writes.size() * sizeof(uint64_t), "sums of another size");
    const char* at = bytes.data();
    for (auto* part : {&writes, &adds, &sends}) {
      memcpy(part->data(), at, part->size() * sizeof(uint64_t));
      at += part->size() * sizeof(uint64_t);
    }
  }
};

// ---- one process -----------------------------------------------------------------------------------------------

enum class Step { kIdle, kWrite, kReadBack, kAdd, kSend };

struct Lane {
  urma_jetty_t* jetty = nullptr;
  Step step = Step::kIdle;
  uint32_t to = 0;
  uint64_t number = 0;
};

struct Peer {
  std::vector<urma_target_jetty_t*> jettys;
  urma_target_seg_t* segment = nullptr;
  uint64_t base = 0;
};

class Process {
 public:
  Process() : lanes_(options.jettys), peers_(options.count), sums_(options.count), random_(options.index + 1) {}

  void run() {
    open();
    meet();
    begin_ = now();
    const double end = begin_ + options.seconds;
    while (now() < end || under_way_ != 0) turn(now() < end);
    publish("sums", sums_.bytes());
    settle();
    leave();
    uint64_t writes = 0, adds = 0, sends = 0;
    for (uint32_t i = 0; i < options.count; ++i)
      writes += sums_.writes[i], adds += sums_.adds[i], sends += sums_.sends[i];
    printf("mesh %u: %llu WRITEs read back, %llu atomics, %llu SENDs, %llu received\n", options.index,
           static_cast<unsigned long long>(writes), static_cast<unsigned long long>(adds),
           static_cast<unsigned long long>(sends), static_cast<unsigned long long>(received_));
  }

 private:
  // Memory: the counter; what others write, by process and jetty; what our jettys write, and read; receives.
  uint64_t slots_at() const { return 64; }
  uint64_t slot(uint32_t from, uint32_t jetty) const {
    return slots_at() + (uint64_t{from} * options.jettys + jetty) * kSlot;
  }
  uint64_t ours(uint32_t lane) const { return slot(options.count, lane); }
  uint64_t back(uint32_t lane) const { return slot(options.count + 1, lane); }
  uint64_t receive(uint32_t n) const { return slot(options.count + 2, 0) + uint64_t{n} * kMessage; }
  unsigned char* at(uint64_t offset) { return memory_.data() + offset; }

  void open() {
    need(urma_init(nullptr) == URMA_SUCCESS, "urma_init");
    int devices = 0;
    urma_device_t** list = urma_get_device_list(&devices);
    need(list != nullptr && devices > 0, "no device");
    context_ = urma_create_context(list[0], 0);
    urma_free_device_list(list);
    need(context_ != nullptr, "no context");
    jfce_ = urma_create_jfce(context_);
    urma_jfc_cfg_t jfc_cfg{};
    jfc_cfg.depth = kReceives + options.jettys;
    jfc_cfg.jfce = jfce_;
    jfc_ = urma_create_jfc(context_, &jfc_cfg);
    need(jfc_ != nullptr, "no JFC");
    memory_.resize(receive(kReceives));
    urma_seg_cfg_t seg_cfg{};
    seg_cfg.va = reinterpret_cast<uint64_t>(memory_.data());
    seg_cfg.len = memory_.size();
    seg_cfg.flag.bs.access = URMA_ACCESS_READ | URMA_ACCESS_WRITE | URMA_ACCESS_ATOMIC;
    segment_ = urma_register_seg(context_, &seg_cfg);
    need(segment_ != nullptr, "no segment");
    urma_jfr_cfg_t jfr_cfg{};
    jfr_cfg.depth = kReceives;
    jfr_cfg.trans_mode = URMA_TM_RM;
    jfr_cfg.max_sge = 1;
    jfr_cfg.min_rnr_timer = 5;
    jfr_cfg.jfc = jfc_;
    jfr_ = urma_create_jfr(context_, &jfr_cfg);
    need(jfr_ != nullptr, "no JFR");
    for (Lane& lane : lanes_) {
      urma_jetty_cfg_t cfg{};
      cfg.flag.bs.share_jfr = 1;
      cfg.jfs_cfg.depth = 4;
      cfg.jfs_cfg.trans_mode = URMA_TM_RM;
      cfg.jfs_cfg.max_sge = 1;
      cfg.jfs_cfg.rnr_retry = 7;
      cfg.jfs_cfg.err_timeout = 17;
      cfg.jfs_cfg.jfc = jfc_;
      cfg.shared.jfr = jfr_;
      lane.jetty = urma_create_jetty(context_, &cfg);
      need(lane.jetty != nullptr, "no jetty");
    }
    for (uint32_t n = 0; n < kReceives; ++n) post_receive(n);
  }

  void wait_for_all(const char* step) {
    const double end = now() + kPatience;
    for (uint32_t i = 0; i < options.count;) {
      if (is_there(step, i)) {
        ++i;
        continue;
      }
      need(now() < end, std::string("process ") + std::to_string(i) + " did not say " + step);
      if (received_expected_) turn(false);
      usleep(1000);
    }
  }

  void meet() {
    Address own{lanes_[0].jetty->jetty_id, segment_->seg};
    std::string bytes(reinterpret_cast<const char*>(&own), sizeof own);
    for (const Lane& lane : lanes_) bytes.append(reinterpret_cast<const char*>(&lane.jetty->jetty_id.id), 4);
    publish("address", bytes);
    wait_for_all("address");
    for (uint32_t i = 0; i < options.count; ++i) {
      if (i != options.index) import(i, read_all("address", i));
    }
    received_expected_ = true;
    publish("met", "");
    wait_for_all("met");
  }

  void import(uint32_t index, const std::string& bytes) {
    Address address;
    need(bytes.size() == sizeof address + 4 * options.jettys, "an address of another size");
    memcpy(&address, bytes.data(), sizeof address);
    Peer& peer = peers_[index];
    peer.base = address.segment.ubva.va;
    peer.segment = urma_import_seg(context_, &address.segment, nullptr, 0, {});
    need(peer.segment != nullptr, "cannot import a segment");
    for (uint32_t j = 0; j < options.jettys; ++j) {
      urma_rjetty_t remote{};
      remote.jetty_id = address.first;
      memcpy(&remote.jetty_id.id, bytes.data() + sizeof address + 4 * j, 4);
      remote.trans_mode = URMA_TM_RM;
      remote.type = URMA_JETTY;
      remote.tp_type = URMA_RTP;
      peer.jettys.push_back(urma_import_jetty(context_, &remote, nullptr));
      need(peer.jettys.back() != nullptr, "cannot import a jetty");
    }
  }

  // ---- traffic ----
  void post_receive(uint32_t n) {
    urma_sge_t sge{reinterpret_cast<uint64_t>(at(receive(n))), kMessage, segment_, nullptr};
    urma_jfr_wr_t wr{{&sge, 1}, n, nullptr};
    urma_jfr_wr_t* bad = nullptr;
    need(urma_post_jfr_wr(jfr_, &wr, &bad) == URMA_SUCCESS, "cannot post a receive");
  }

  uint32_t any_peer() {
    const uint32_t n = static_cast<uint32_t>(random_() % (options.count - 1));
    return n >= options.index ? n + 1 : n;
  }

  void begin(uint32_t n) {
    Lane& lane = lanes_[n];
    lane.to = any_peer();
    ++lane.number;
    switch (random_() % 3) {
      case 0:
        for (uint32_t i = 0; i < kSlot; ++i) at(ours(n))[i] = static_cast<unsigned char>(lane.number * 31 + i * 7 + n);
        return post(n, Step::kWrite, URMA_OPC_WRITE);
      case 1:
        return post(n, Step::kAdd, URMA_OPC_FADD);
      default:
        return post(n, Step::kSend, URMA_OPC_SEND);
    }
  }

  void post(uint32_t n, Step step, urma_opcode_t op) {
    Lane& lane = lanes_[n];
    Peer& peer = peers_[lane.to];
    const uint64_t there = peer.base + (step == Step::kAdd ? 0 : slot(options.index, n));
    const uint32_t bytes = step == Step::kAdd ? 8 : step == Step::kSend ? sizeof(Message) : kSlot;
    const bool reads = step == Step::kReadBack || step == Step::kAdd;
    const uint32_t to_jetty = static_cast<uint32_t>(random_() % options.jettys);
    urma_sge_t here{reinterpret_cast<uint64_t>(at(reads ? back(n) : ours(n))), bytes, segment_, nullptr};
    urma_sge_t far{there, bytes, peer.segment, nullptr};
    urma_jfs_wr_t wr{};
    wr.opcode = op;
    wr.flag.bs.complete_enable = 1;
    wr.tjetty = peer.jettys[to_jetty];
    wr.user_ctx = kSendContext | n;
    if (step == Step::kAdd) {
      wr.faa.dst = &far;
      wr.faa.src = &here;
      wr.faa.operand = 1;
    } else if (step == Step::kSend) {
      Message message{options.index, n, lane.to, to_jetty, lane.number, 0};
      message.check = message.sum();
      memcpy(at(ours(n)), &message, sizeof message);
      wr.send.src = {&here, 1};
    } else {
      wr.rw.src = {step == Step::kWrite ? &here : &far, 1};
      wr.rw.dst = {step == Step::kWrite ? &far : &here, 1};
    }
    urma_jfs_wr_t* bad = nullptr;
    need(urma_post_jetty_send_wr(lane.jetty, &wr, &bad) == URMA_SUCCESS, "cannot post");
    lane.step = step;
    ++under_way_;
  }

  void turn(bool begin_more) {
    if (begin_more) {
      for (uint32_t n = 0; n < options.jettys; ++n) {
        if (lanes_[n].step == Step::kIdle) begin(n);
      }
    }
    urma_cr_t records[64];
    int count = urma_poll_jfc(jfc_, 64, records);
    if (count == 0) {
      wait();
      count = urma_poll_jfc(jfc_, 64, records);
    }
    need(count >= 0, "urma_poll_jfc");
    for (int i = 0; i < count; ++i) take(records[i]);
  }

  void wait() {
    need(urma_rearm_jfc(jfc_, false) == URMA_SUCCESS, "urma_rearm_jfc");
    urma_jfc_t* woken = nullptr;
    const int count = urma_wait_jfc(jfce_, 1, 10, &woken);
    need(count >= 0 || errno == EINTR, "urma_wait_jfc");
    uint32_t events = 1;
    if (count == 1) urma_ack_jfc(&woken, &events, 1);
  }

  std::string failure_of(const urma_cr_t& record, uint32_t n) const {
    std::string what =
        "after " + std::to_string(now() - begin_) + " s a completion says " + std::to_string(record.status);
    if ((record.user_ctx & kSendContext) == 0 || n >= options.jettys) return what;
    return what + ", step " + std::to_string(static_cast<int>(lanes_[n].step)) + " to process " +
           std::to_string(lanes_[n].to);
  }

  void take(const urma_cr_t& record) {
    const auto n = static_cast<uint32_t>(record.user_ctx & ~kSendContext);
    if (record.status != URMA_CR_SUCCESS) die(failure_of(record, n));
    if ((record.user_ctx & kSendContext) == 0) return take_message(record);
    need(n < options.jettys && record.user_data == reinterpret_cast<uintptr_t>(lanes_[n].jetty),
         "a stranger's completion");
    Lane& lane = lanes_[n];
    --under_way_;
    const Step done = std::exchange(lane.step, Step::kIdle);
    switch (done) {
      case Step::kWrite:
        return post(n, Step::kReadBack, URMA_OPC_READ);
      case Step::kReadBack:
        need(memcmp(at(back(n)), at(ours(n)), kSlot) == 0, "what was read is not what was written");
        ++sums_.writes[lane.to];
        return;
      case Step::kAdd:
        ++sums_.adds[lane.to];
        return;
      case Step::kSend:
        ++sums_.sends[lane.to];
        return;
      case Step::kIdle:
        die("a completion that nobody waits for");
    }
  }

  void take_message(const urma_cr_t& record) {
    Message message;
    need(record.completion_len == sizeof message && record.user_ctx < kReceives, "a message of another length");
    memcpy(&message, at(receive(static_cast<uint32_t>(record.user_ctx))), sizeof message);
    need(message.check == message.sum() && message.to == options.index,
         "a message with wrong bytes, or for another one");
    need(message.to_jetty < options.jettys && record.local_id == lanes_[message.to_jetty].jetty->jetty_id.id,
         "a message at the wrong jetty");
    ++received_;
    ++received_from_[message.from];
    post_receive(static_cast<uint32_t>(record.user_ctx));
  }

  // What the others say they did to us, and what arrived.
  void settle() {
    wait_for_all("sums");
    uint64_t adds = 0;
    for (uint32_t i = 0; i < options.count; ++i) {
      if (i == options.index) continue;
      Sums theirs(options.count);
      theirs.read(read_all("sums", i));
      adds += theirs.adds[options.index];
      const double end = now() + kPatience;
      while (received_from_[i] < theirs.sends[options.index] && now() < end) turn(false);
      need(received_from_[i] == theirs.sends[options.index], "process " + std::to_string(i) + " sent " +
                                                                 std::to_string(theirs.sends[options.index]) +
                                                                 ", here are " + std::to_string(received_from_[i]));
    }
    uint64_t counter;
    memcpy(&counter, at(0), sizeof counter);
    need(counter == adds, "the counter says " + std::to_string(counter) + ", " + std::to_string(adds) + " were added");
    publish("settled", "");
    wait_for_all("settled");
  }

  void leave() {
    for (Peer& peer : peers_) {
      for (urma_target_jetty_t* target : peer.jettys) need(urma_unimport_jetty(target) == URMA_SUCCESS, "unimport");
      if (peer.segment != nullptr) need(urma_unimport_seg(peer.segment) == URMA_SUCCESS, "urma_unimport_seg");
    }
    for (Lane& lane : lanes_) need(urma_delete_jetty(lane.jetty) == URMA_SUCCESS, "urma_delete_jetty");
    need(urma_delete_jfr(jfr_) == URMA_SUCCESS, "urma_delete_jfr");
    need(urma_delete_jfc(jfc_) == URMA_SUCCESS, "urma_delete_jfc");
    need(urma_delete_jfce(jfce_) == URMA_SUCCESS, "urma_delete_jfce");
    need(urma_unregister_seg(segment_) == URMA_SUCCESS, "urma_unregister_seg");
    need(urma_delete_context(context_) == URMA_SUCCESS, "urma_delete_context");
    need(urma_uninit() == URMA_SUCCESS, "urma_uninit");
  }

  static constexpr uint64_t kSendContext = uint64_t{1} << 63;

  std::vector<Lane> lanes_;
  double begin_ = 0;
  std::vector<Peer> peers_;
  Sums sums_;
  std::mt19937_64 random_;
  std::vector<unsigned char> memory_;
  std::vector<uint64_t> received_from_ = std::vector<uint64_t>(options.count);
  uint64_t received_ = 0;
  uint32_t under_way_ = 0;
  bool received_expected_ = false;  // others may send by now
  urma_context_t* context_ = nullptr;
  urma_jfce_t* jfce_ = nullptr;
  urma_jfc_t* jfc_ = nullptr;
  urma_jfr_t* jfr_ = nullptr;
  urma_target_seg_t* segment_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--directory") options.directory = value;
    if (name == "--index") options.index = static_cast<uint32_t>(std::stoul(value));
    if (name == "--count") options.count = static_cast<uint32_t>(std::stoul(value));
    if (name == "--jettys") options.jettys = static_cast<uint32_t>(std::stoul(value));
    if (name == "--seconds") options.seconds = std::stod(value);
  }
  if (argc % 2 == 0 || options.directory.empty() || options.count < 2 || options.index >= options.count) {
    fprintf(stderr, "usage: mesh --directory DIR --index I --count N [--jettys J] [--seconds S]\n");
    return 2;
  }
  Process().run();
  return 0;
}
