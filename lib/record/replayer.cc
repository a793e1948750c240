// SPDX-License-Identifier: Apache-2.0
#include "lib/record/replayer.h"

#include <algorithm>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>

#include "lib/base/bytes.h"
#include "lib/record/call_kinds.h"
#include "lib/record/image.h"
#include "lib/record/replay_calls.h"

namespace ub::record {

namespace {

std::string text(const char* format, ...) __attribute__((format(printf, 1, 2)));
std::string text(const char* format, ...) {
  char line[512];
  va_list args;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  return line;
}

std::string hex(const std::byte* at, size_t bytes) {
  std::string out;
  for (size_t i = 0; i < bytes; ++i) out += text("%02x", static_cast<unsigned>(at[i]));
  return out;
}

bool is_of_call(Entry entry) { return entry >= Entry::kRefused && entry <= Entry::kResult; }

}  // namespace

Replayer::~Replayer() = default;

// ---- beginning -------------------------------------------------------------------------------------------------

std::unique_ptr<Replayer> Replayer::open(const std::string& path, std::string* why) {
  std::unique_ptr<Replayer> replayer(new Replayer);
  replayer->file_ = FileReader::open(path, why);
  if (replayer->file_ == nullptr) return nullptr;
  if (replayer->take_start(why)) return replayer;
  *why = path + ": " + *why;
  return nullptr;
}

bool Replayer::take_start(std::string* why) {
  const FileHeader& h = header();
  if (!file_->has_good_image()) {
    *why = "the image of the NIC in this file is cut off or damaged, so there is nothing to begin with";
    return false;
  }
  const size_t arena_bytes = ReplayCore::arena_bytes(h.config);
  if (arena_bytes != h.arena_bytes) {
    *why = text("the recorded Core has %" PRIu64 " bytes of tables, and one of this program %zu: it is another build",
                h.arena_bytes, arena_bytes);
    return false;
  }
  if (!arena_.take_at(h.arena, arena_bytes) || !shadows_.begin_at(h.shadows)) {
    *why = text("the addresses of the recorded Core (0x%" PRIx64 ", 0x%" PRIx64 ") are taken in this process", h.arena,
                h.shadows);
    return false;
  }
  core_ = std::make_unique<ReplayCore>(h.config, arena_.data(), host_);
  const std::span<const std::byte> body = file_->body();
  in_ = std::make_unique<Input>(body.data(), body.data() + body.size());
  for (uint32_t i = 0; i < h.rings && in_->good(); ++i) {
    Ring ring = in_->value<Ring>();
    ring.real_slots = ring.real_source = ring.real_work = nullptr;
    ring.real_indices = nullptr;
    ring.real_limits = nullptr;
    shadows_.put(i, ring);
  }
  if (!in_->good() || h.shadows_bytes > shadows_.memory().bytes() ||
      !take_image(*in_, *core_, {shadows_.memory().data(), h.shadows_bytes}, {arena_.data(), arena_.bytes()})) {
    *why = "the file is cut off within its image, so there is nothing to begin with";
    return false;
  }
  auto& asked = core_->engine<bypass::Engine<ReplayHost>>().state().asked;
  for (uint32_t handle = 1; handle <= asked.handles.high_water(); ++handle)
    for (uint32_t i = 0; i < bypass::kRecordsPerHandle; ++i) asked.record(handle, i).to = memory_of_nobody();
  if (h.foreign_only != 0) host_.count_foreign_only();
  host_.keep_rings({shadows_.memory().data(), shadows_.memory().bytes()});
  core_->look(true);
  frames_in_.forget();
  frames_out_.forget();
  return true;
}

bool Replayer::differs(const std::string& what) {
  if (!fault_.empty()) return false;
  const auto call = static_cast<uint32_t>(step_.call);
  const char* name = call < kCallCount ? kCallNames[call] : "none that this program knows";
  fault_ = text("call %" PRIu64 " (%s): ", step_.number, name) + what;
  return false;
}

// ---- the next call ---------------------------------------------------------------------------------------------

Replayer::Outcome Replayer::next() {
  if (!fault_.empty()) return Outcome::kDiffers;
  while (!in_->empty()) {
    const auto entry = static_cast<Entry>(in_->byte());
    bool good = true, is_call = true;
    switch (entry) {
      case Entry::kCall:
        good = run_call();
        break;
      case Entry::kTurnCall:
        good = run_turn_call();
        break;
      case Entry::kFrame:
        good = run_frame();
        break;
      default:
        is_call = false;
        good = take_change(entry);
    }
    // The writer was killed, or had no more room, within this entry or behind it.
    if (!in_->good() || (!good && in_->empty() && !file_->is_complete())) {
      fault_.clear();
      return Outcome::kEnd;
    }
    if (!good) return Outcome::kDiffers;
    if (!is_call) continue;
    ++calls_;
    return Outcome::kStep;
  }
  return Outcome::kEnd;
}

// What is no call: changes of rings, and what the last turn has done.
bool Replayer::take_change(Entry entry) {
  if (entry == Entry::kPiece) return check_piece();
  if (entry == Entry::kOutput) return compare_output(false);
  if (entry == Entry::kTurnEnd) return end_turn();
  const auto number = static_cast<uint32_t>(in_->varint());
  if (entry == Entry::kLent) return take_lent(number);
  const bool is_there = number != 0 && number < shadows_.size() && shadows_[number].kind != RingKind::kNone;
  if (!is_there && !selects()) return differs(text("an application used ring %u, which there is not", number));
  QueueIndices no_indices{};
  Ring no_ring;  // of an object that was made in the recording, and could not be made without some calls
  no_ring.indices = &no_indices;
  Ring& ring = is_there ? shadows_[number] : no_ring;
  switch (entry) {
    case Entry::kPosted:
      post(ring, in_->varint());
      return true;
    case Entry::kJumped:
      ring.produced = static_cast<uint32_t>(in_->varint());
      ring.indices->produced.store(ring.produced, std::memory_order_relaxed);
      return true;
    case Entry::kConsumed:
      take_consumed(ring, static_cast<uint32_t>(in_->varint()));
      return true;
    case Entry::kArmed:
      ring.armed = static_cast<uint32_t>(in_->varint());
      ring.armed_at = static_cast<uint32_t>(in_->varint());
      if (selects()) ring.armed_at = ring.consumed;
      ring.indices->armed_at.store(ring.armed_at, std::memory_order_relaxed);
      ring.indices->armed.store(ring.armed, std::memory_order_relaxed);
      return true;
    case Entry::kRate:
      return take_rate(ring, in_->varint());
    default:
      return differs(text("entry %u is none that this program knows", static_cast<unsigned>(entry)));
  }
}

bool Replayer::check_piece() {
  const auto bytes = in_->value<uint32_t>(), sum = in_->value<uint32_t>();
  if (!in_->good() || bytes == 0 || file_->is_good_piece(in_->at(), bytes, sum)) return in_->good();
  fault_ = text("the file is damaged somewhere behind call %" PRIu64, step_.number);
  return false;
}

// Memory for the object that the next call makes.
bool Replayer::take_lent(uint32_t number) {
  Ring ring = in_->value<Ring>();
  ring.real_slots = ring.real_source = ring.real_work = nullptr;
  ring.real_indices = nullptr;
  const bool limited = std::exchange(ring.real_limits, nullptr) != nullptr;
  const auto limits = limited ? in_->value<OwnerLimits>() : OwnerLimits{};
  if (!in_->good() || ring.id != 0 || !shadows_.put_zeroed(number, ring))
    return differs("it has rings where there is no memory");
  if (limited && ring.limits == nullptr) return differs("it has limits of a queue where there is no memory");
  if (limited) *ring.limits = limits;
  lent_ = number;
  if (gone_ == number) gone_ = 0;
  return true;
}

void Replayer::take_consumed(Ring& ring, uint32_t count) {
  ring.consumed += count;
  if (selects()) ring.consumed = ring.indices->produced.load(std::memory_order_relaxed);
  ring.indices->consumed.store(ring.consumed, std::memory_order_relaxed);
}

bool Replayer::take_rate(Ring& ring, uint64_t bytes_per_second) {
  if (ring.limits == nullptr) return selects() || differs("it limits the rate of a queue without limits");
  ring.limits->pacer.bytes_per_second = bytes_per_second;
  ring.limits->pacer.next = {};
  return true;
}

void Replayer::post(Ring& ring, uint64_t count) {
  const bool is_posted = has_room(ring, count);
  for (uint64_t i = 0; i < count && in_->good(); ++i) {
    in_->difference(ring.like, kSlotBytes);
    if (is_posted) std::memcpy(ring.element(ring.produced++), ring.like, kSlotBytes);
  }
  ring.indices->produced.store(ring.produced, std::memory_order_relaxed);
}

// In a replay as it was recorded there always is.
bool Replayer::has_room(const Ring& ring, uint64_t count) const {
  if (!selects()) return true;
  if (ring.kind == RingKind::kSend && !selection_->takes_queue(ring.id)) return false;
  return ring.slots_in_use() + count <= ring.slot_count;
}

// What stands behind a call: how the Host answered, and what came out.
void Replayer::take_expected() {
  expected_ = {};
  answers_.clear();
  while (in_->good() && !in_->empty() && is_of_call(static_cast<Entry>(*in_->at()))) {
    SentFrame sent{};
    switch (static_cast<Entry>(in_->byte())) {
      case Entry::kRefused:
        answers_.refused.push_back(static_cast<uint32_t>(in_->varint()));
        break;
      case Entry::kCopy: {
        const auto number = static_cast<uint32_t>(in_->varint());
        answers_.copies.emplace_back(number, static_cast<CopyResult>(in_->byte()));
        break;
      }
      case Entry::kBadIcrc:
        expected_.bad_icrc = true;
        break;
      case Entry::kPayload: {
        const size_t bytes = in_->varint();
        const std::byte* payload = in_->take(bytes);
        const std::byte* sum = in_->take(4);
        if (sum != nullptr) expected_.payload.push_back({{payload, bytes}, load_le32(sum)});
        break;
      }
      case Entry::kHeader: {
        const auto link = static_cast<uint32_t>(in_->varint());
        const size_t bytes = std::min<size_t>(in_->varint(), LikeFrames::kMostBytes);
        std::byte* like = frames_out_.of(link, bytes);
        in_->difference(like, words(bytes));
        sent.frame.assign(like, like + bytes);
        if (in_->byte() != static_cast<uint8_t>(Entry::kSent)) return;
        [[fallthrough]];
      }
      case Entry::kSent:
        sent.link = static_cast<uint32_t>(in_->varint());
        sent.bytes = static_cast<uint32_t>(in_->varint());
        if (const std::byte* sum = in_->take(4)) sent.sum = load_le32(sum);
        expected_.sent.push_back(std::move(sent));
        break;
      default:
        expected_.result_bytes = in_->varint();
        expected_.results = in_->take(expected_.result_bytes);
        break;
    }
  }
}

// ---- calls -----------------------------------------------------------------------------------------------------

bool Replayer::rerecord(const std::string& path, const Selection& selection, Recorder* recorder, std::string* why) {
  const auto is_output = [this] {
    const Entry next = in_->empty() ? Entry::kNothing : static_cast<Entry>(*in_->at());
    return next == Entry::kOutput || next == Entry::kTurnEnd;
  };
  while (is_output()) {
    if (take_change(static_cast<Entry>(in_->byte()))) continue;
    *why = "its replay differs at " + fault_;
    return false;
  }
  const std::span<std::byte> arena(arena_.data(), arena_.bytes());
  RecorderOptions options{.headers = header().has_headers != 0, .payload = header().has_payload != 0};
  options.most_bytes = kHeaderPage + file_->bytes() * 2 + (size_t{64} << 20);
  options.recording = header().recording;
  if (!recorder->begin_shadows() || !lend_rings(*recorder, *core_)) {
    *why = "there is no memory for rings";
    return false;
  }
  if (!recorder->begin(path, options, header().config, arena, why)) return false;
  put_image(*recorder, *core_, arena);
  core_->log_calls(recorder);
  host_.record(recorder);
  selection_ = &selection;
  recorder_ = recorder;
  return true;
}

// The step has what it needs, and its entries were read. False: it is not to be made.
bool Replayer::begin_step() {
  if (selects()) {
    answers_.clear();
    if (!selection_->takes_call(step_.number)) return false;
  }
  host_.begin_call(std::move(answers_));
  step_.sent = &host_.sent();
  return true;
}

void Replayer::begin_recorded_turn() {
  if (recorder_ == nullptr || std::exchange(in_recorded_turn_, true)) return;
  RecordedCore<ReplayCore>(*core_, *recorder_).begin_turn(step_.now);
}

// Calls fn() with what takes the calls of a turn.
template <class Fn>
void Replayer::make(Fn fn) {
  if (recorder_ == nullptr) return fn(*core_);
  RecordedCore<ReplayCore> recorded(*core_, *recorder_);
  fn(recorded);
}

bool Replayer::run_call() {
  step_ = {.number = calls_, .now = core_->state().now};
  step_.call = static_cast<Call>(in_->byte());
  const size_t bytes = in_->varint();
  const std::byte* from = in_->take(bytes);
  if (from == nullptr) return false;
  take_expected();
  Input arguments(from, from + bytes);
  if (!begin_step()) return true;
  if (destroys(step_.call) && bytes >= sizeof object_)
    std::memcpy(&object_, from + bytes - sizeof object_, sizeof object_);
  results_.clear();
  std::vector<std::byte>* out = &results_;
  bool complete = false;
  begin_recorded_turn();
  switch (step_.call) {
#define UB_CALL(id, method)                                           \
  case Call::id:                                                      \
    complete = run(*core_, &ReplayCore::method, arguments, out); \
    break;
#define UB_ROCE_CALL(id, method)                                                                         \
  case Call::id:                                                                                         \
    complete = core_->roce() != nullptr && run(*core_->roce(), &roce::Engine<ReplayHost>::method, arguments, out); \
    break;
#define UB_BYPASS_CALL(id, method)                                                                          \
  case Call::id:                                                                                            \
    complete = run(core_->engine<bypass::Engine<ReplayHost>>().requester(),                                 \
                   &bypass::Requester<ReplayHost>::method, arguments, out);                                 \
    break;
#define UB_TURN_CALL(id, method) \
  case Call::id:                 \
    break;
#include "lib/transport/looking/calls.def"
  }
  if (!complete) return differs("its arguments are cut off");
  const bool same = compare_sent() && fits_results(results_);
  settle_made(results_);
  return same;
}

bool Replayer::run_turn_call() {
  step_ = {.number = calls_};
  step_.call = static_cast<Call>(in_->byte());
  last_ns_ += in_->varint();
  const Instant now = step_.now = Instant{last_ns_};
  uint64_t first = 0, second = 0;
  const bool has_one = step_.call != Call::kOnTimer;
  if (has_one) first = in_->varint();
  if (step_.call == Call::kPollPackets || step_.call == Call::kOnCopyDone) second = in_->varint();
  take_expected();
  if (!in_->good()) return false;
  const auto object = step_.object = static_cast<uint32_t>(first);
  step_.tag = step_.call == Call::kOnCopyDone ? first : 0;
  if (!begin_step()) return true;
  results_.clear();
  begin_recorded_turn();
  switch (step_.call) {
    case Call::kOnPosted:
      core_->on_posted(now, object);
      break;
    case Call::kOnCompletionsRead:
      core_->on_completions_read(now, object);
      break;
    case Call::kOnArmed:
      core_->on_armed(now, object);
      break;
    case Call::kOnCopyDone:
      core_->on_copy_done(now, first, second != 0);
      break;
    case Call::kOnTimer:
      make([&](auto& core) { core.on_timer(now); });
      break;
    case Call::kPollPackets:
      make([&](auto& core) { add_result(core.poll_packets(now, first, static_cast<Acks>(second)), &results_); });
      break;
    case Call::kPollEvents: {
      std::vector<Event> events(std::min<uint64_t>(first, 1024));
      make([&](auto& core) { events.resize(core.poll_events(events)); });
      add_result(digest_of(events).sum(), &results_);
      break;
    }
    default:
      return differs("the file has it where a call of a turn should be");
  }
  return compare_sent() && fits_results(results_);
}

bool Replayer::run_frame() {
  step_ = {.number = calls_};
  step_.call = static_cast<Call>(in_->byte());
  last_ns_ += in_->varint();
  step_.now = Instant{last_ns_};
  step_.link = static_cast<uint32_t>(in_->varint());
  const size_t bytes = in_->varint(), payload_at = in_->varint(), payload = in_->varint();
  if (bytes > 65536 || payload > bytes || payload_at > bytes - payload || bytes - payload > LikeFrames::kMostBytes)
    return differs("the file has a frame with impossible lengths");
  std::byte* like = frames_in_.of(step_.link, bytes - payload);
  in_->difference(like, words(bytes - payload));
  const std::byte* payload_from = header().has_payload != 0 ? in_->take(payload) : nullptr;
  take_expected();
  if (!in_->good()) return false;
  std::vector<std::byte>& frame = step_.received;
  frame.assign(bytes, std::byte{0});
  std::memcpy(frame.data(), like, payload_at);
  std::memcpy(frame.data() + payload_at + payload, like + payload_at, bytes - payload - payload_at);
  if (payload_from != nullptr) {
    std::memcpy(frame.data() + payload_at, payload_from, payload);
  } else if (payload != 0) {
    const FrameShape shape = shape_of(frame);
    if (has_icrc(frame, shape)) {
      const uint32_t right = right_icrc(frame, shape);
      store_le32(frame.data() + shape.icrc_at, expected_.bad_icrc ? ~right : right);
    }
  }
  if (!begin_step()) return true;
  begin_recorded_turn();
  make([&](auto& core) {
    step_.call == Call::kOnPacket ? core.on_packet(step_.now, step_.link, frame)
                                  : core.on_lane_frame(step_.now, step_.link, frame);
  });
  return compare_sent();
}

// The object that a call has made or destroyed has its ring, or has none any more.
void Replayer::settle_made(const std::vector<std::byte>& results) {
  const uint32_t lent = std::exchange(lent_, 0), object = std::exchange(object_, 0);
  if (lent == 0 && object == 0) return;
  const bool ok = !results.empty() && results.front() == static_cast<std::byte>(Status::kOk);
  if (lent != 0 && ok && results.size() >= sizeof(Status) + sizeof(uint32_t)) {
    uint32_t id;
    std::memcpy(&id, results.data() + sizeof(Status), sizeof id);
    shadows_.name(lent, id);
  } else if (lent != 0) {
    shadows_.put(lent, {});
  } else if (ok) {
    gone_ = shadows_.find(ring_kind_of(step_.call), object);
  }
}

// ---- comparing -------------------------------------------------------------------------------------------------

bool Replayer::fits_results(const std::vector<std::byte>& results) {
  if (expected_.results == nullptr || recorder_ != nullptr) return true;  // it told of none
  if (expected_.result_bytes == results.size() && std::memcmp(expected_.results, results.data(), results.size()) == 0)
    return true;
  return differs("its result was " + hex(expected_.results, expected_.result_bytes) + ", and is " +
                 hex(results.data(), results.size()) + " in the replay");
}

bool Replayer::compare_sent() {
  if (recorder_ != nullptr) return true;
  std::vector<SentFrame>& sent = host_.sent();
  for (size_t i = 0; i < std::max(sent.size(), expected_.sent.size()); ++i) {
    if (i == sent.size())
      return differs(text("%zu frames were sent, and the replay sends %zu", expected_.sent.size(), i));
    if (i == expected_.sent.size()) return differs(text("%zu frames were sent, and the replay sends another one", i));
    if (!compare_frame(i, expected_.sent[i], sent[i])) return false;
    if (i < expected_.payload.size() && !compare_payload(i, sent[i])) return false;
  }
  return true;
}

bool Replayer::compare_frame(size_t number, const SentFrame& was, const SentFrame& is) {
  if (was.link != is.link)
    return differs(text("frame %zu was sent over link %u, and leaves over %u", number, was.link, is.link));
  if (was.bytes != is.bytes) return differs(text("frame %zu had %u bytes, and has %u", number, was.bytes, is.bytes));
  if (was.sum == is.sum) return true;
  if (was.frame.empty()) return differs(text("the header of frame %zu is another one", number));
  size_t at = 0;
  while (at < was.frame.size() && at < is.frame.size() && was.frame[at] == is.frame[at]) ++at;
  return differs(text("byte %zu of the header of frame %zu is another one: ", at, number) +
                 hex(was.frame.data(), was.frame.size()) + " was sent, " +
                 hex(is.frame.data(), std::min(is.frame.size(), was.frame.size())) + " is");
}

// The replay has no memory: bytes that were read from it are those of the recording, and its CRC is made again. All
// others have to be the same.
bool Replayer::compare_payload(size_t number, SentFrame& is) {
  const SentPayload& was = expected_.payload[number];
  const FrameShape shape = shape_of(is.frame);
  if (shape.payload_bytes != was.bytes.size())
    return differs(text("frame %zu had %zu bytes of payload, and has %u", number, was.bytes.size(),
                        shape.payload_bytes));
  std::byte* const payload = is.frame.data() + shape.payload_at;
  for (size_t i = 0; i < was.bytes.size(); ++i) {
    if (payload[i] != std::byte{0} && payload[i] != was.bytes[i])
      return differs(text("byte %zu of the payload of frame %zu is another one", i, number));
  }
  const bool sealed = has_icrc(is.frame, shape);
  if (sealed && load_le32(is.frame.data() + shape.icrc_at) != right_icrc(is.frame, shape))
    return differs(text("frame %zu has a wrong ICRC", number));
  put_bytes(payload, was.bytes.data(), was.bytes.size());
  if (sealed) store_le32(is.frame.data() + shape.icrc_at, right_icrc(is.frame, shape));
  if (digest_of(is.frame) == was.sum) return true;
  return differs(text("a byte behind the header of frame %zu is another one", number));
}

bool Replayer::end_turn() {
  turn_ = calls_;
  if (std::exchange(in_recorded_turn_, false)) recorder_->end_turn();
  return compare_output(true);
}

// What applications see. `all`: nothing new was recorded.
bool Replayer::compare_output(bool all) {
  if (recorder_ != nullptr) {
    if (gone_ != 0) shadows_.put(std::exchange(gone_, 0), {});
    return all || in_->take(4) != nullptr;
  }
  const Digest digest = shadows_.tell();
  if (gone_ != 0) shadows_.put(std::exchange(gone_, 0), {});
  if (all) return digest.is_empty() || differs("applications see completions or indices that they did not see");
  const std::byte* sum = in_->take(4);
  if (sum == nullptr) return false;
  return load_le32(sum) == digest.sum() || differs("completions, or indices of rings, are other ones");
}

}  // namespace ub::record
