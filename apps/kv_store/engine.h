// SPDX-License-Identifier: Apache-2.0
//
// What a Client consists of: its queues, the server's memory, and operations that are under way. An operation goes from
// step to step; each step waits for something that the NIC brings:
//
//   get     by a hint: the record            put      by a hint: the record is written, the old one marked; then the
//           else: lines of the index,                 slot is exchanged. Without a hint: first a get, if READs take
//           then records that they name               no time; else, and after a lost race: a message
//                                            others   a message, and its reply
//
// Thread: one.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/kv_store/client.h"
#include "apps/kv_store/grants.h"
#include "apps/kv_store/greeting.h"
#include "apps/kv_store/hints.h"
#include "apps/kv_store/layout.h"
#include "apps/kv_store/messages.h"
#include "apps/kv_store/objects.h"
#include "tools/common/peer.h"

namespace ub::kv {

class Client::Engine {
 public:
  explicit Engine(const ClientConfig&);

  bool start_get(std::string_view key, uint64_t cookie);
  bool start_change(Op, std::string_view key, std::string_view value, uint64_t cookie);
  bool start_scan(std::string_view first, uint32_t count, uint64_t cookie);
  size_t poll(std::span<Completion> out);

  uint32_t under_way() const { return under_way_; }
  const Geometry& geometry() const { return welcome_.geometry; }
  const Counters& counters() const { return counters_; }
  const std::string& error() const { return error_; }

 private:
  static constexpr uint32_t kMostInternal = 4;  // a request for a grant, and some that give one back

  enum class Kind : uint8_t {
    kUser,      // it has a cookie
    kPart,      // gets one record of a scan
    kPlace,     // gets the record that a put replaces
    kInternal,  // asks for a grant, gives it back, or is the probe
  };
  enum class Step : uint8_t {
    kFree,
    kBegun,
    kHinted,
    kLines,
    kRecord,
    kPlacing,
    kPublishing,
    kMessage,
    kParts,  // a scan waits for its parts
    kPlace,  // a put waits for what gets its place
    kProbe,  // does a READ end when its post returns?
    kDone
  };

  struct Place {
    uint64_t slot = 0;  // bytes from the first one of the memory
    Word word;
  };
  // A record of a scan.
  struct Item {
    std::string key, value;
    Place place;
    bool found = false;
  };
  struct Scan {
    uint32_t wanted = 0;
    size_t started = 0, ended = 0;  // of the items
    std::vector<Item> items;
    std::vector<Record> records;
  };
  struct Operation {
    uint32_t number = 0;
    Kind kind = Kind::kUser;
    Step step = Step::kFree;
    Op op = Op::kPut;    // of a message
    uint32_t waits = 0;  // for so many completions and replies
    uint64_t cookie = 0;
    Status status = Status::kOk;
    KeyHash hash;
    std::string key;
    char* buffer = nullptr;    // a record, or lines, or a message
    uint64_t* olds = nullptr;  // what compare-and-swaps found: in the old record, in the slot
    std::string_view value;    // of a get
    uint32_t value_bytes = 0;  // of a put
    Reply reply = {};

    std::vector<Place> candidates;  // records that may be the one with this key
    size_t candidate = 0;           // that is being read
    uint32_t reach = 0;             // lines of the index that were not read yet
    uint32_t attempts = 0;

    Place place;                     // put: what is to be exchanged
    Word next;                       // put: for what
    Grants::Grant* grant = nullptr;  // put: where the record is

    Scan scan;
    Operation* parent = nullptr;  // of a part, or of what gets a place
    size_t item = 0;              // of the parent
  };

  // Set-up.
  void connect(const ClientConfig&);
  void allocate_operations();
  void post_receive(uint32_t buffer);
  void probe();

  // Operations.
  Operation* begin(std::string_view key, uint64_t cookie);
  Operation& take(Kind);
  void free(Operation&);
  void complete(Operation&, Status);
  void advance(Operation&);
  void fail(const std::string& why);

  // Gets.
  void look_up(Operation&);
  void read_lines(Operation&);
  void on_hinted(Operation&);
  void on_lines(Operation&);
  void on_record(Operation&);
  void next_candidate(Operation&);
  void found(Operation&, const Place&, const RecordView&);
  void fetch(Operation&, Step, uint64_t at, uint64_t bytes);
  void load(Operation&, uint64_t at, uint64_t bytes);
  void run_loaded();

  // Puts without the server.
  bool put_by_accesses(Operation&);
  bool put_directly(Operation&, const Hints::Hint&);
  bool read_place(Operation&);
  void on_place(Operation&);
  void publish(Operation&);
  void on_published(Operation&);
  void keep_grants(uint32_t units, bool has_room);

  // Messages.
  void send_message(Operation&, Op, uint64_t argument, std::string_view key, uint32_t value_bytes);
  void on_message(uint32_t buffer, uint32_t bytes);
  void on_reply(Operation&);
  void take_grant(const Reply&, const char* content);

  // Scans.
  void ask_for_items(Operation&);
  void take_items(Operation&, const Reply&, const char* content, uint32_t bytes);
  void start_parts();
  void on_part(Operation&);
  void end_scan_if_done(Operation&);

  // The NIC.
  size_t take_completions();
  size_t take_batch();
  void post(const Jetty&, urma_jfs_wr_t*);
  void look_at_connection();
  urma_sge_t remote(uint64_t at, uint64_t bytes) const {
    return piece(memory_there_->seg.ubva.va + at, bytes, memory_there_.get());
  }

  const ClientConfig config_;
  const urma_token_t token_;
  Welcome welcome_ = {};
  uint32_t buffer_bytes_ = 0;  // of an operation

  Memory memory_;
  Segment segment_;
  Jfc jfc_;
  Jfr jfr_;
  // Two queues: what accesses memory of this host is done at once only while nothing of its queue is under way, and a
  // message takes its time.
  Jetty messages_, accesses_;
  TargetSegment memory_there_;
  TargetJetty server_;
  Aperture aperture_;
  tools::Peer peer_;
  char* replies_ = nullptr;

  std::vector<Operation> operations_;
  std::vector<Operation*> free_, told_, loaded_, scans_;
  std::deque<Operation*> done_;
  uint32_t under_way_ = 0, parts_ = 0, internal_ = 0;  // operations of each kind; parts, and what gets places
  uint32_t silent_polls_ = 0;
  bool reads_at_once_ = false;  // the server's memory is of this host: READs have ended when their post returns
  bool grant_asked_ = false;
  uint32_t puts_until_grant_ = 0;  // after a refusal

  Hints hints_;
  Grants grants_;
  Counters counters_;
  std::string error_;
};

}  // namespace ub::kv
