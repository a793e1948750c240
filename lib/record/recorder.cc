// SPDX-License-Identifier: Apache-2.0
#include "lib/record/recorder.h"

#include <time.h>

#include <algorithm>
#include <bit>

#include "lib/base/bytes.h"
#include "lib/record/call_kinds.h"
#include "lib/record/varint.h"
#include "lib/transport/resource/records.h"
#include "lib/transport/ta/send_ring.h"

namespace ub::record {

namespace {

constexpr size_t kTail = 64;  // of a long frame without payload, its last bytes are kept

uint32_t look(const std::atomic<uint32_t>& index) { return index.load(std::memory_order_acquire); }

// The bytes at the beginning of an element that a Core reads as such, and not as payload. Behind them is inline
// payload, or what the slots had when they were last used, which may have been some.
size_t kept_of(const Wqe& wqe) {
  if (wqe.op == WrOp::kSkip) return offsetof(Wqe, target);
  const size_t own = has_extra(wqe.op) ? 2 * kSlotBytes : kSlotBytes;
  if ((wqe.flags & kWrInline) == 0 || ta::is_fenced(wqe.op) || wqe.length == 0)
    return own + (wqe.sge_count > 1 ? (wqe.sge_count - size_t{1}) * sizeof(Sge) : 0);
  return has_extra(wqe.op) ? own : offsetof(Wqe, sge);
}

// Leaves out the rest of elements as they follow each other in a ring.
class KeptBytes {
 public:
  explicit KeptBytes(Ring& ring) : ring_(ring) {}

  // `slot` is the next one. It becomes what is kept of it; `in_a_row` are posted from it on, up to the end of the ring.
  void blank(std::byte* slot, uint32_t in_a_row) {
    if (ring_.kind != RingKind::kSend || ring_.is_raw) return;
    if (slots_left_ == 0 && !begin_element(slot, in_a_row)) return;
    --slots_left_;
    const size_t kept = std::min(kSlotBytes, kept_);
    std::memset(slot + kept, 0, kSlotBytes - kept);
    kept_ -= kept;
  }

 private:
  bool begin_element(const std::byte* slot, uint32_t in_a_row) {
    Wqe wqe;
    std::memcpy(&wqe, slot, sizeof wqe);
    const bool fits = wqe.slots != 0 && wqe.slots <= in_a_row;
    ring_.is_raw = !fits || (wqe.op != WrOp::kSkip && !ta::valid_element(wqe));
    if (ring_.is_raw) return false;
    slots_left_ = wqe.slots;
    kept_ = kept_of(wqe);
    return true;
  }

  Ring& ring_;
  uint32_t slots_left_ = 0;
  size_t kept_ = 0;
};

}  // namespace

// ---- the file --------------------------------------------------------------------------------------------------

bool Recorder::begin(const std::string& path, const RecorderOptions& options, const CoreConfig& config,
                     std::span<std::byte> arena, std::string* why) {
  options_ = options;
  if (!begin_shadows()) {
    *why = "no address space for rings";
    return false;
  }
  file_ = FileWriter::create(path, options.most_bytes, why);
  if (file_ == nullptr) return false;
  ended_ = Ended::kNot;
  frames_in_.forget();
  frames_out_.forget();
  last_ns_ = 0;
  FileHeader& h = file_->header();
  h.config = config;
  h.has_headers = options.headers;
  h.has_payload = options.payload;
  h.foreign_only = options.foreign_only;
  h.recording = options.recording;
  h.number = options.number;
  timespec real{};
  clock_gettime(CLOCK_REALTIME, &real);
  h.began_ns = static_cast<uint64_t>(real.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(real.tv_nsec);
  h.arena = reinterpret_cast<uint64_t>(arena.data());
  h.arena_bytes = arena.size();
  h.shadows = reinterpret_cast<uint64_t>(shadows_.memory().data());
  h.shadows_bytes = shadows_.used().size();
  if (!options.payload) shadows_.forget_retired();
  h.rings = shadows_.size();
  put_image(std::as_bytes(std::span(shadows_.all())));
  return true;
}

void Recorder::put_image(std::span<const std::byte> bytes) {
  constexpr size_t kPiece = 1 << 16;
  for (; !bytes.empty(); bytes = bytes.subspan(std::min(kPiece, bytes.size()))) {
    const size_t some = std::min(kPiece, bytes.size());
    std::byte* at = begin_entry(some);
    if (at == nullptr) return;
    file_->commit(put_bytes(at, bytes.data(), some));
  }
}

void Recorder::stop(Ended ended) {
  if (!recorded()) return;
  ended_ = ended;
  file_->finish(ended);
}

std::byte* Recorder::end_for_want_of_room(size_t most) {
  stop(file_->fits(most) ? Ended::kNoSpace : Ended::kFull);
  return nullptr;
}

// ---- turns -----------------------------------------------------------------------------------------------------

void Recorder::tell() {
  const Digest digest = shadows_.tell();
  if (digest.is_empty()) return;
  if (std::byte* at = begin_entry(5)) {
    *at++ = static_cast<std::byte>(Entry::kOutput);
    store_le32(at, digest.sum());
    file_->commit(at + 4);
  }
}

void Recorder::end_turn() {
  tell();
  in_turn_ = false;
  if (recorded() && file_->used() != turn_began_) put_turn_end();
}

void Recorder::put_turn_end() {
  std::byte* at = begin_entry(1);
  if (at == nullptr) return;
  *at++ = static_cast<std::byte>(Entry::kTurnEnd);
  file_->commit(at);
  file_->end_piece_if_large();
}

void Recorder::take_all() {
  for (const uint32_t number : shadows_.of(RingKind::kSend)) take_posted(number, shadows_[number]);
  for (const uint32_t number : shadows_.of(RingKind::kReceive)) take_posted(number, shadows_[number]);
  for (const uint32_t number : shadows_.of(RingKind::kCompletion)) take_completion_side(number, shadows_[number]);
}

// What an application rang for was posted before it rang, but perhaps after the turn began.
void Recorder::take_rung(Call call, uint32_t object) {
  if (!in_turn_) return take_all();
  if (call == Call::kOnPosted) {
    take(shadows_.find(RingKind::kSend, object));
  } else if (call == Call::kOnCompletionsRead || call == Call::kOnArmed) {
    take(shadows_.find(RingKind::kCompletion, object));
  }
}

void Recorder::take(uint32_t number) {
  Ring& ring = shadows_[number];
  if (ring.kind == RingKind::kNone) return;
  ring.kind == RingKind::kCompletion ? take_completion_side(number, ring) : take_posted(number, ring);
}

void Recorder::take_posted(uint32_t number, Ring& ring) {
  const uint32_t produced = look(ring.real_indices->produced);
  if (produced != ring.produced) take_elements(number, ring, produced);
  if (ring.real_limits != nullptr) take_rate(number, ring);
}

void Recorder::take_elements(uint32_t number, Ring& ring, uint32_t produced) {
  const uint32_t count = produced - ring.produced;
  const bool possible = count <= ring.slot_count;
  std::byte* at = begin_entry(2 + 2 * kMostVarint + (possible ? count * most_difference(kSlotBytes) : 0));
  if (at != nullptr) {
    *at++ = static_cast<std::byte>(possible ? Entry::kPosted : Entry::kJumped);
    at = put_varint(at, number);
    at = put_varint(at, possible ? count : produced);
  }
  ring.is_raw |= !possible;
  KeptBytes kept(ring);
  for (uint32_t slot = ring.produced; possible && slot != produced; ++slot) {
    const size_t offset = size_t{slot & (ring.slot_count - 1)} * kSlotBytes;
    alignas(Wqe) std::byte element[kSlotBytes];
    std::memcpy(element, ring.real_elements() + offset, kSlotBytes);
    std::memcpy(ring.elements() + offset, element, kSlotBytes);
    const uint32_t in_a_row = std::min(produced - slot, ring.slot_count - slot % ring.slot_count);
    if (!options_.payload) kept.blank(element, in_a_row);
    if (at != nullptr) at = put_difference(at, ring.like, element, kSlotBytes);
  }
  if (at != nullptr) file_->commit(at);
  ring.produced = produced;
  ring.indices->produced.store(produced, std::memory_order_release);
  if (ring.kind == RingKind::kReceive && ring.armed != 0) unflushed_.push_back(ring.id);
}

void Recorder::take_completion_side(uint32_t number, Ring& ring) {
  const uint32_t armed = look(ring.real_indices->armed), armed_at = look(ring.real_indices->armed_at);
  const uint32_t consumed = look(ring.real_indices->consumed);
  if (consumed != ring.consumed) {
    if (std::byte* at = begin_entry(1 + 2 * kMostVarint)) {
      *at++ = static_cast<std::byte>(Entry::kConsumed);
      at = put_varint(at, number);
      file_->commit(put_varint(at, consumed - ring.consumed));
    }
    ring.consumed = consumed;
    ring.indices->consumed.store(consumed, std::memory_order_release);
  }
  if (armed == ring.armed && armed_at == ring.armed_at) return;
  if (std::byte* at = begin_entry(1 + 3 * kMostVarint)) {
    *at++ = static_cast<std::byte>(Entry::kArmed);
    at = put_varint(at, number);
    at = put_varint(at, armed);
    file_->commit(put_varint(at, armed_at));
  }
  ring.armed = armed;
  ring.armed_at = armed_at;
  ring.indices->armed_at.store(armed_at, std::memory_order_relaxed);
  ring.indices->armed.store(armed, std::memory_order_relaxed);
}

// Somebody gave the application another rate.
void Recorder::take_rate(uint32_t number, Ring& ring) {
  const uint64_t rate = ring.real_limits->pacer.bytes_per_second;
  if (rate == ring.rate) return;
  if (std::byte* at = begin_entry(1 + 2 * kMostVarint)) {
    *at++ = static_cast<std::byte>(Entry::kRate);
    at = put_varint(at, number);
    file_->commit(put_varint(at, rate));
  }
  ring.rate = rate;
  ring.limits->pacer.bytes_per_second = rate;
  ring.limits->pacer.next = {};
}

// ---- calls of the data path ------------------------------------------------------------------------------------

void Recorder::begin_frame(Call call, Instant now, uint32_t link, std::span<const std::byte> frame) {
  if (++depth_ != 1) return;
  if (!in_turn_) take_all();
  frame_ = frame;
  FrameShape shape = shape_of(frame);
  if (frame.size() - shape.payload_bytes > LikeFrames::kMostBytes) {
    shape.payload_at = LikeFrames::kMostBytes - kTail;
    shape.payload_bytes = static_cast<uint32_t>(frame.size() - LikeFrames::kMostBytes);
  }
  const size_t tail_at = shape.payload_at + shape.payload_bytes;
  const size_t kept = frame.size() - shape.payload_bytes;
  const size_t payload_kept = options_.payload ? shape.payload_bytes : 0;
  std::byte* at = begin_entry(2 + 5 * kMostVarint + most_difference(LikeFrames::kMostBytes) + payload_kept);
  if (at == nullptr) return;
  *at++ = static_cast<std::byte>(Entry::kFrame);
  *at++ = static_cast<std::byte>(call);
  at = put_time(at, now);
  at = put_varint(at, link);
  at = put_varint(at, frame.size());
  at = put_varint(at, shape.payload_at);
  at = put_varint(at, shape.payload_bytes);
  std::byte rest[LikeFrames::kMostBytes];
  std::memcpy(rest, frame.data(), shape.payload_at);
  std::memcpy(rest + shape.payload_at, frame.data() + tail_at, frame.size() - tail_at);
  std::memset(rest + kept, 0, words(kept) - kept);
  at = put_difference(at, frames_in_.of(link, kept), rest, words(kept));
  file_->commit(put_bytes(at, frame.data() + shape.payload_at, payload_kept));
}

// ---- control calls ---------------------------------------------------------------------------------------------

void Recorder::begin(Call call, std::initializer_list<Bytes> arguments) {
  if (++depth_ != 1) return;
  call_ = call;
  if (begin_bell(call, arguments)) return;
  if (!in_turn_) take_all();
  if (destroys(call)) std::memcpy(&object_, std::prev(arguments.end())->data(), sizeof object_);
  size_t bytes = 0;
  for (const Bytes& argument : arguments) bytes += argument.size();
  std::byte* at = begin_entry(2 + kMostVarint + bytes);
  if (at == nullptr) return;
  *at++ = static_cast<std::byte>(Entry::kCall);
  *at++ = static_cast<std::byte>(call);
  at = put_varint(at, bytes);
  for (const Bytes& argument : arguments) at = put_bytes(at, argument.data(), argument.size());
  file_->commit(at);
}

// Doorbells and ends of copies come often, so they are written in less space.
bool Recorder::begin_bell(Call call, std::initializer_list<Bytes> arguments) {
  const bool is_bell = call == Call::kOnPosted || call == Call::kOnCompletionsRead || call == Call::kOnArmed;
  if (!is_bell && call != Call::kOnCopyDone) return false;
  const Bytes* argument = arguments.begin();
  Instant now;
  std::memcpy(&now, argument++->data(), sizeof now);
  uint64_t object = 0;
  std::memcpy(&object, argument->data(), argument->size());
  take_rung(call, static_cast<uint32_t>(object));
  std::byte* at = begin_entry(3 + 2 * kMostVarint);
  if (at == nullptr) return true;
  *at++ = static_cast<std::byte>(Entry::kTurnCall);
  *at++ = static_cast<std::byte>(call);
  at = put_varint(put_time(at, now), object);
  if (++argument != arguments.end()) *at++ = argument->front();
  file_->commit(at);
  return true;
}

void Recorder::put_results(std::initializer_list<Bytes> results) {
  size_t bytes = 0;
  for (const Bytes& result : results) bytes += result.size();
  if (bytes == 0) return;
  std::byte* at = begin_entry(1 + kMostVarint + bytes);
  if (at == nullptr) return;
  *at++ = static_cast<std::byte>(Entry::kResult);
  at = put_varint(at, bytes);
  for (const Bytes& result : results) at = put_bytes(at, result.data(), result.size());
  file_->commit(at);
}

void Recorder::end(std::initializer_list<Bytes> results) {
  if (--depth_ != 0) return;
  if (results.size() != 0) put_results(results);
  end_answers();
  if (lent_ != 0 || object_ != 0) settle_lent(results);
}

// What the call made or destroyed.
void Recorder::settle_lent(std::initializer_list<Bytes> results) {
  const uint32_t lent = std::exchange(lent_, 0), object = std::exchange(object_, 0);
  const bool ok = results.size() != 0 && results.begin()->front() == static_cast<std::byte>(Status::kOk);
  if (lent != 0 && ok) {
    uint32_t id;
    std::memcpy(&id, std::next(results.begin())->data(), sizeof id);
    shadows_.name(lent, id);
  } else if (lent != 0) {
    shadows_.give_back(lent);
  } else if (ok) {
    const uint32_t ring = shadows_.find(ring_kind_of(call_), object);
    if (ring == 0) return;
    if (in_turn_) tell();
    shadows_.give_back(ring);
  }
}

// Only these drops depend on the CRC.
void Recorder::dropped(Counter why) {
  if (depth_ == 0 || frame_.empty()) return;
  if (why == Counter::kRxDropUnknownTpn) {
    const FrameShape shape = shape_of(frame_);
    if (load_le32(frame_.data() + shape.icrc_at) == right_icrc(frame_, shape)) return;
  } else if (why != Counter::kRxDropBadIcrc && why != Counter::kRoceRxDropBadIcrc) {
    return;
  }
  if (std::byte* at = begin_entry(1)) {
    *at++ = static_cast<std::byte>(Entry::kBadIcrc);
    file_->commit(at);
  }
}

// ---- rings of new objects --------------------------------------------------------------------------------------

void Recorder::lend(const Ring& real, std::byte** slots, std::byte** source, QueueIndices** indices, std::byte** work,
                    OwnerLimits** limits) {
  const bool is_one = real.real_slots != nullptr && real.real_indices != nullptr;
  if (depth_ != 0 || !is_one || !std::has_single_bit(real.slot_count))
    return;  // the Core refuses it, or the call is part of another
  const uint32_t number = shadows_.lend(real);
  if (number == 0) return stop(Ended::kNoMemory);
  lent_ = number;
  const Ring& ring = shadows_[number];
  *slots = ring.slots;
  *indices = ring.indices;
  if (source != nullptr) *source = ring.source;
  if (work != nullptr) *work = ring.work;
  if (limits != nullptr) *limits = ring.limits;
  std::byte* at = begin_entry(1 + 2 * kMostVarint + sizeof ring + sizeof(OwnerLimits));
  if (at == nullptr) return;
  *at++ = static_cast<std::byte>(Entry::kLent);
  at = put_varint(at, number);
  at = put_bytes(at, &ring, sizeof ring);
  if (ring.limits != nullptr) at = put_bytes(at, ring.limits, sizeof(OwnerLimits));
  file_->commit(at);
}

// A JFC or JFR.
template <class Config>
void Recorder::lend_simple(RingKind kind, Config* config) {
  Ring real;
  real.kind = kind;
  real.slot_count = config->slot_count;
  real.real_slots = reinterpret_cast<std::byte*>(config->slots);
  real.real_indices = config->indices;
  std::byte* slots = real.real_slots;
  lend(real, &slots, nullptr, &config->indices, nullptr, nullptr);
  config->slots = reinterpret_cast<decltype(config->slots)>(slots);
}

void Recorder::lend(JfcConfig* config) { lend_simple(RingKind::kCompletion, config); }
void Recorder::lend(JfrConfig* config) { lend_simple(RingKind::kReceive, config); }

void Recorder::lend(SendQueueConfig* config) {
  if (config->work == nullptr) return;
  Ring real;
  real.kind = RingKind::kSend;
  real.completes_early = config->completes_early;
  real.slot_count = config->slot_count;
  real.real_slots = reinterpret_cast<std::byte*>(config->slots);
  real.real_source = reinterpret_cast<std::byte*>(config->source);
  real.real_indices = config->indices;
  real.real_work = config->work;
  real.work_bytes = work_bytes_of(config->depth);
  real.real_limits = config->limits;
  std::byte *slots = real.real_slots, *source = real.real_source;
  lend(real, &slots, &source, &config->indices, &config->work, &config->limits);
  config->slots = reinterpret_cast<Wqe*>(slots);
  config->source = reinterpret_cast<Wqe*>(source);
}

uint32_t Recorder::adopt(const Ring& real) {
  const uint32_t number = shadows_.lend(real);
  if (number == 0) return 0;
  Ring& ring = shadows_[number];
  const QueueIndices& theirs = *ring.real_indices;
  const auto copy = [](std::atomic<uint32_t>& to, const std::atomic<uint32_t>& from) {
    const uint32_t value = from.load();
    to.store(value);
    return value;
  };
  ring.armed = copy(ring.indices->armed, theirs.armed);
  ring.armed_at = copy(ring.indices->armed_at, theirs.armed_at);
  ring.consumed = ring.told_consumed = ring.digested_consumed = copy(ring.indices->consumed, theirs.consumed);
  ring.produced = ring.told_produced = copy(ring.indices->produced, theirs.produced);
  ring.told_retired = ring.digested_retired = copy(ring.indices->retired, theirs.retired);
  copy(ring.indices->retiring, theirs.retiring);
  // What is produced from now on is taken at the next turn. The application writes where nothing is in use.
  if (ring.kind == RingKind::kCompletion || ring.source != nullptr)
    std::memcpy(ring.slots, ring.real_slots, size_t{ring.slot_count} * kSlotBytes);
  for (uint32_t left = ring.kind == RingKind::kCompletion ? 0 : ring.slots_in_use(); left != 0; --left) {
    const size_t at = size_t{(ring.produced - left) & (ring.slot_count - 1)} * kSlotBytes;
    std::memcpy(ring.elements() + at, ring.real_elements() + at, kSlotBytes);
  }
  if (ring.work != nullptr) std::memcpy(ring.work, ring.real_work, ring.work_bytes);
  shadows_.name(number, real.id);
  return number;
}

// ---- from the Host ---------------------------------------------------------------------------------------------

void Recorder::began(bool room) {
  const uint32_t number = begun_++;
  if (room || depth_ == 0) return;
  if (std::byte* at = begin_entry(1 + kMostVarint)) {
    *at++ = static_cast<std::byte>(Entry::kRefused);
    file_->commit(put_varint(at, number));
  }
}

void Recorder::copied(CopyResult result) {
  const uint32_t number = copies_++;
  if (result == CopyResult::kDone || depth_ == 0) return;
  if (std::byte* at = begin_entry(2 + kMostVarint)) {
    *at++ = static_cast<std::byte>(Entry::kCopy);
    at = put_varint(at, number);
    *at++ = static_cast<std::byte>(result);
    file_->commit(at);
  }
}

void Recorder::sent(uint32_t link, std::span<const std::byte> frame) {
  if (depth_ == 0) return;
  const FrameShape shape = shape_of(frame);
  if (options_.payload) put_sent_payload(frame, shape);
  const std::span<const std::byte> header = header_of(frame, shape);
  const size_t bytes = header.size();
  std::byte* at = begin_entry(6 + 4 * kMostVarint + most_difference(LikeFrames::kMostBytes));
  if (at == nullptr) return;
  if (options_.headers) {
    *at++ = static_cast<std::byte>(Entry::kHeader);
    at = put_varint(at, link);
    at = put_varint(at, bytes);
    std::byte padded[LikeFrames::kMostBytes];
    std::memcpy(padded, header.data(), bytes);
    std::memset(padded + bytes, 0, words(bytes) - bytes);
    at = put_difference(at, frames_out_.of(link, bytes), padded, words(bytes));
  }
  *at++ = static_cast<std::byte>(Entry::kSent);
  at = put_varint(at, link);
  at = put_varint(at, frame.size());
  store_le32(at, digest_of(header));
  file_->commit(at + 4);
}

void Recorder::put_sent_payload(std::span<const std::byte> frame, const FrameShape& shape) {
  std::byte* at = begin_entry(1 + kMostVarint + shape.payload_bytes + 4);
  if (at == nullptr) return;
  *at++ = static_cast<std::byte>(Entry::kPayload);
  at = put_varint(at, shape.payload_bytes);
  at = put_bytes(at, frame.data() + shape.payload_at, shape.payload_bytes);
  store_le32(at, digest_of(frame));
  file_->commit(at + 4);
}

}  // namespace ub::record
