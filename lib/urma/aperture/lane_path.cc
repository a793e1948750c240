// SPDX-License-Identifier: Apache-2.0
#include "lib/urma/aperture/lane_path.h"

#include <sched.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "lib/ipc/barrier.h"
#include "lib/ipc/not_cancelled.h"
#include "lib/transport/wire/bypass_packet.h"
#include "lib/urma/clock.h"

namespace ub::aperture {
namespace {

using ipc::LaneLayout;
using wire::TaOpcode;

static_assert(LaneLayout::kSmallSlots == SOFTUB_LANE_SLOTS && LaneLayout::kSmallSlot == SOFTUB_LANE_SLOT_BYTES);
static_assert(LaneLayout::kLine == SOFTUB_LANE_LINE && LaneLayout::kAnswerHeaders == SOFTUB_LANE_ANSWER_HEADERS);
static_assert(LaneLayout::kAnswerHeaders == wire::kBypassAnswerHeaderSize);

constexpr int64_t kDriveAfterNs = 2'000, kRingAfterNs = 5'000, kLookAfterNs = 50'000;
constexpr uint32_t kMaxLines = kMaxBlockBytes / kLineBytes;

uint64_t load_word(const std::byte* line) {
  return __atomic_load_n(reinterpret_cast<const uint64_t*>(line), __ATOMIC_ACQUIRE);
}

bool is_answer(uint64_t word, uint32_t number) { return (word & 0xffff) == (number & 0xffff) && word >> 16 != 0; }

// Bytes of the frame behind its headers, as the word of an answer says.
uint32_t data_of(uint64_t word) { return static_cast<uint32_t>(word >> 16 & 0xffff) - LaneLayout::kAnswerHeaders; }

// What the first line of an answer says.
bool is_refusal(const std::byte* line) {
  wire::AtahCompact answer;
  (void)wire::AtahCompact::read(line + LaneLayout::kLine - answer.kSize, answer.kSize, answer);
  return answer.status != wire::AtahCompact::kOk;
}

// The headers of a request, where the first line of a slot has them.
softub_lane_head_t make_head(TaOpcode opcode, const RemoteSegment& segment, bool byte_enables) {
  static constexpr std::byte kNoEnables[8]{};
  wire::BypassPacket p;
  p.opcode = opcode;
  p.ma = {0, 0, false, 0, segment.token_id};
  p.tv = segment.token_required;
  p.token_value = segment.token;
  p.has_be = byte_enables;
  p.be = {kNoEnables, 64};
  const size_t headers = wire::bypass_header_size(p);
  softub_lane_head_t head{};
  auto* line = reinterpret_cast<std::byte*>(head.line);
  wire::write_bypass_headers(p, line + LaneLayout::kLine - headers);
  const size_t behind = (byte_enables ? p.be.size() : 0) + (p.tv ? wire::Tvetah::kSize : 0);
  head.address_at = static_cast<uint32_t>(LaneLayout::kLine - behind - wire::MaetahCompact::kSize);
  head.tassn_at = head.address_at - sizeof(uint16_t);
  head.word = LaneLayout::word(0, wire::ta_has_payload(opcode) ? headers + kLineBytes : headers, headers);
  return head;
}

}  // namespace

// ---- life ------------------------------------------------------------------------------------------------------

std::unique_ptr<LanePath> LanePath::make(ipc::OpenedLane lane, const RemoteSegment& segment, Options options,
                                         softub_aperture_t* pub, std::string* error) {
  std::unique_ptr<LanePath> path(new LanePath(segment, std::move(options), pub));
  if (!path->memory_.map(lane.memory.get(), LaneLayout::kBytes, error)) return nullptr;
  path->socket_ = std::move(lane.socket);
  path->set_up(lane);
  return path;
}

void LanePath::set_up(const ipc::OpenedLane& lane) {
  auto* at = reinterpret_cast<uint8_t*>(memory_.data());
  lane_.requests = at + LaneLayout::kSmallRequests;
  lane_.replies = at + LaneLayout::kSmallReplies;
  lane_.nic_sleeps = reinterpret_cast<uint32_t*>(at + LaneLayout::kControl);
  lane_.next = lane_.answered = 0;
  lane_.fence_needed = lane.fence_needed;
  lane_.load = make_head(TaOpcode::kRead, segment_, false);
  lane_.store = large_store_ = make_head(TaOpcode::kWrite, segment_, false);
  lane_.store_bytes = make_head(TaOpcode::kWriteByteEnable, segment_, true);
  large_load_ = lane_.load;
  pub_.base = segment_.base;
  pub_.bytes = segment_.bytes;
  pub_.unanswered = 0;
  pub_.path = SOFTUB_PATH_LANE;
}

LanePath::~LanePath() {
  pub_.path = SOFTUB_PATH_BROKEN;  // what it points to goes away
}

void LanePath::break_off() {
  broken_ = true;
  pub_.path = SOFTUB_PATH_BROKEN;
  socket_.reset();  // the NIC drops its end
}

urma_cr_status_t LanePath::check(uint64_t at, uint32_t bytes) const {
  if (broken_) return URMA_CR_ACK_TIMEOUT_ERR;
  if (bytes == 0 || bytes > kMaxBlockBytes) return URMA_CR_LOC_LEN_ERR;
  return segment_.contains(at, bytes) ? URMA_CR_SUCCESS : URMA_CR_REM_ACCESS_ABORT_ERR;
}

// ---- waiting ---------------------------------------------------------------------------------------------------

inline uint64_t LanePath::wait_for(const std::byte* line, uint32_t number) {
  for (uint32_t spins = SOFTUB_LANE_SPINS; spins != 0; --spins) {
    const uint64_t word = load_word(line);
    if (is_answer(word, number)) return word;
  }
  return wait_slowly(line, number);
}

// The other end may be asleep, without a CPU, or gone; or it is our own NIC, which we can drive.
uint64_t LanePath::wait_slowly(const std::byte* line, uint32_t number) {
  const ipc::NotCancelled guard;  // else an answer would come that nobody takes
  const int64_t began = urma::now_ns();
  int64_t looked = began;
  for (;;) {
    const uint64_t word = load_word(line);
    if (is_answer(word, number)) return word;
    const int64_t now = urma::now_ns();
    const int64_t waited = now - began;
    if (waited > kRingAfterNs) ring_if_asleep();
    if (waited > kDriveAfterNs && options_.drive) options_.drive();
    if (now - looked < kLookAfterNs) continue;
    looked = now;
    if (waited > options_.timeout.ns || is_hung_up()) {
      break_off();
      return 0;
    }
    ::sched_yield();
  }
}

void LanePath::ring_if_asleep() {
  if (softub_lane_must_ring(&lane_)) ring();
}

// Only one ring for each sleep.
void LanePath::ring() {
  if (__atomic_exchange_n(lane_.nic_sleeps, 0, __ATOMIC_SEQ_CST) == 0) return;
  const ipc::NotCancelled guard;
  const int kept = errno;
  const char bell = 0;
  ::send(socket_.get(), &bell, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
  errno = kept;
}

bool LanePath::is_hung_up() const {
  const int kept = errno;
  char nothing;
  const ssize_t got = ::recv(socket_.get(), &nothing, 1, MSG_PEEK | MSG_DONTWAIT);
  const bool hung_up = got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
  errno = kept;
  return hung_up;
}

// ---- lines -----------------------------------------------------------------------------------------------------

void LanePath::send_load(uint64_t address) {
  softub_lane_send(&lane_, &lane_.load, softub_lane_begin(&lane_, &lane_.load, address));
  ring_if_asleep();
}

// To the oldest request of the small ring: a store, or a load ahead of its use. False: the lane is broken.
bool LanePath::take_answer() {
  const uint32_t number = lane_.answered;
  const std::byte* line = small_answer(number);
  const uint64_t word = wait_for(line, number);
  if (word == 0) {
    if (store_error_ == URMA_CR_SUCCESS) store_error_ = URMA_CR_ACK_TIMEOUT_ERR;
    return false;
  }
  ++lane_.answered;
  --pub_.unanswered;
  if (EarlyLoad* early = std::exchange(early_[number % SOFTUB_LANE_SLOTS], nullptr); early != nullptr) {
    take_early(*early, line, word);
  } else if (is_refusal(line) && store_error_ == URMA_CR_SUCCESS) {
    store_error_ = URMA_CR_REM_ACCESS_ABORT_ERR;
  }
  return true;
}

void LanePath::take_early(EarlyLoad& early, const std::byte* line, uint64_t word) {
  early.is_done = true;
  early.status = data_of(word) == kLineBytes ? URMA_CR_SUCCESS : URMA_CR_REM_ACCESS_ABORT_ERR;
  if (early.status != URMA_CR_SUCCESS) return;
  const uint64_t offset = (segment_.base + early.block.at) % kLineBytes;
  std::memcpy(early.block.to, line + kLineBytes + offset, early.block.bytes);
}

// Waits for one answer, and takes those that are there already. False: the lane is broken.
bool LanePath::make_room() {
  if (!take_answer()) return false;
  while (pub_.unanswered != 0 && softub_lane_answer(&lane_, lane_.answered) != 0) take_answer();
  return true;
}

bool LanePath::take_answers() {
  while (pub_.unanswered != loads_) {
    if (!take_answer()) return false;
  }
  return true;
}

// A program may have left a load by a jump, out of the handler of a fault in its buffer. What was asked then is the
// oldest that is in the rings, since a load takes the answers to all that is older first. False: the lane is broken.
bool LanePath::forget_abandoned() {
  for (; loads_ != 0; took_load()) {
    if (wait_for(small_answer(lane_.answered), lane_.answered) == 0) return false;
  }
  for (; large_answered_ != large_next_; ++large_answered_) {
    if (wait_for(large_answer(large_answered_), large_answered_) == 0) return false;
  }
  return true;
}

// The bytes are copied last: the program's memory may fault, and its handler leave by a jump.
urma_cr_status_t LanePath::take_load_answer(const Piece& piece, std::byte* to) {
  const uint32_t number = lane_.answered;
  const uint64_t word = wait_for(small_answer(number), number);
  if (word == 0) return URMA_CR_ACK_TIMEOUT_ERR;
  took_load();
  if (word != softub_lane_data_word(number)) return URMA_CR_REM_ACCESS_ABORT_ERR;
  std::memcpy(to, softub_lane_answer_data(&lane_, number) + piece.offset, piece.bytes);
  return URMA_CR_SUCCESS;
}

// ---- long blocks -----------------------------------------------------------------------------------------------

void LanePath::send_large(bool is_store, const Piece& piece, const std::byte* from) {
  const softub_lane_head_t& head = is_store ? large_store_ : large_load_;
  const uint32_t number = large_next_;
  const size_t slot = number % LaneLayout::kLargeSlots;
  std::byte* line = memory_.data() + LaneLayout::kLargeRequests + slot * LaneLayout::kLargeSlot;
  if (is_store) std::memcpy(line + LaneLayout::kLine, from, piece.bytes);
  std::memcpy(line + 8, head.line + 8, LaneLayout::kLine - 8);
  auto* bytes = reinterpret_cast<uint8_t*>(line);
  bytes[head.tassn_at] = static_cast<uint8_t>(number >> 8);
  bytes[head.tassn_at + 1] = static_cast<uint8_t>(number);
  const auto length_code = static_cast<uint64_t>(std::countr_zero(piece.lines));
  softub_lane_put_big64(bytes + head.address_at, piece.address | length_code);
  const uint64_t more = is_store ? uint64_t{piece.lines - 1} * kLineBytes : 0;
  __atomic_store_n(reinterpret_cast<uint64_t*>(line), (head.word + (more << 16)) | (number & 0xffff), __ATOMIC_RELEASE);
  ++large_next_;
  ring_if_asleep();
}

urma_cr_status_t LanePath::take_large_answer(const Piece& piece, std::byte* to) {
  const uint32_t number = large_answered_;
  const std::byte* line = large_answer(number);
  const uint64_t word = wait_for(line, number);
  if (word == 0) return URMA_CR_ACK_TIMEOUT_ERR;
  ++large_answered_;
  if (is_refusal(line)) return URMA_CR_REM_ACCESS_ABORT_ERR;
  if (to == nullptr) return URMA_CR_SUCCESS;
  if (data_of(word) != piece.lines * kLineBytes) return URMA_CR_REM_ACCESS_ABORT_ERR;
  std::memcpy(to, line + LaneLayout::kLine + piece.offset, piece.bytes);
  return URMA_CR_SUCCESS;
}

// ---- RemotePath ------------------------------------------------------------------------------------------------

// Requests are sent as long as there is room, and answers are taken in the order of the requests; both rings may be in
// use, because loads have no order among themselves.
urma_cr_status_t LanePath::load(std::span<const LoadBlock> blocks) {
  for (const LoadBlock& block : blocks) {
    if (const urma_cr_status_t status = check(block.at, block.bytes); status != URMA_CR_SUCCESS) return status;
  }
  if (!forget_abandoned()) return URMA_CR_ACK_TIMEOUT_ERR;
  PieceWalk asked(blocks, segment_.base, kMaxLines), got = asked;
  // The two rings have no order among each other: what goes by the large one waits for the stores in the small one.
  const auto crosses_lines = [this](const LoadBlock& block) {
    return (segment_.base + block.at) % kLineBytes + block.bytes > kLineBytes;
  };
  if (std::any_of(blocks.begin(), blocks.end(), crosses_lines) && !take_answers()) return URMA_CR_ACK_TIMEOUT_ERR;
  urma_cr_status_t first_error = URMA_CR_SUCCESS;
  uint32_t in_flight = 0;
  while (!got.is_over()) {
    while (!asked.is_over()) {
      const Piece piece = asked.piece();
      const bool room = piece.lines == 1 ? has_room() : large_next_ - large_answered_ < LaneLayout::kLargeSlots;
      if (!room) break;
      if (piece.lines == 1) {
        expect_load();
        send_load(piece.address);
      } else {
        send_large(false, piece, nullptr);
      }
      asked.pass(piece);
      ++in_flight;
    }
    if (!take_answers()) return URMA_CR_ACK_TIMEOUT_ERR;
    if (in_flight == 0) continue;  // the stores had taken all room
    --in_flight;
    const Piece piece = got.piece();
    const urma_cr_status_t status =
        piece.lines == 1 ? take_load_answer(piece, got.to()) : take_large_answer(piece, got.to());
    if (status == URMA_CR_ACK_TIMEOUT_ERR) return status;
    if (first_error == URMA_CR_SUCCESS) first_error = status;
    got.pass(piece);
  }
  return first_error;
}

urma_cr_status_t LanePath::load_lines(std::span<const uint64_t> at, std::byte* to) {
  for (const uint64_t place : at) {
    if (const urma_cr_status_t status = check(place, kLineBytes); status != URMA_CR_SUCCESS) return status;
  }
  if (!forget_abandoned() || !take_answers()) return URMA_CR_ACK_TIMEOUT_ERR;
  urma_cr_status_t first_error = URMA_CR_SUCCESS;
  for (size_t sent = 0, got = 0; got != at.size(); ++got, to += kLineBytes) {
    const size_t before = sent;
    for (; sent != at.size() && has_room(); ++sent) {
      expect_load();
      softub_lane_send(&lane_, &lane_.load, softub_lane_begin(&lane_, &lane_.load, segment_.base + at[sent]));
    }
    if (sent != before) ring_if_asleep();
    const urma_cr_status_t status = take_load_answer({segment_.base + at[got], 1, 0, kLineBytes}, to);
    if (status == URMA_CR_ACK_TIMEOUT_ERR) return status;
    if (first_error == URMA_CR_SUCCESS) first_error = status;
  }
  return first_error;
}

urma_cr_status_t LanePath::finish_load(uint64_t at, void* to, uint32_t bytes) {
  expect_load();
  ring_if_asleep();
  return take_load_answer(first_piece(segment_.base + at, bytes, kMaxLines), static_cast<std::byte*>(to));
}

urma_cr_status_t LanePath::store_line(uint64_t address, const std::byte* from, uint64_t enables) {
  if (!has_room() && !make_room()) return URMA_CR_ACK_TIMEOUT_ERR;
  const softub_lane_head_t& head = enables == kAllBytes ? lane_.store : lane_.store_bytes;
  uint8_t* first = softub_lane_begin(&lane_, &head, address);
  // Byte enables are the last header: one big-endian number.
  if (enables != kAllBytes) softub_lane_put_big64(first + kLineBytes - sizeof enables, enables);
  std::memcpy(first + kLineBytes, from, kLineBytes);
  ++pub_.unanswered;
  softub_lane_send(&lane_, &head, first);
  ring_if_asleep();
  return URMA_CR_SUCCESS;
}

urma_cr_status_t LanePath::store_lines(const Piece& piece, const std::byte* from) {
  if (!take_answers()) return URMA_CR_ACK_TIMEOUT_ERR;
  send_large(true, piece, from);
  const urma_cr_status_t status = take_large_answer(piece, nullptr);
  if (status == URMA_CR_ACK_TIMEOUT_ERR) return status;
  if (store_error_ == URMA_CR_SUCCESS) store_error_ = status;
  return URMA_CR_SUCCESS;
}

urma_cr_status_t LanePath::store(const StoreBlock& block) {
  if (const urma_cr_status_t status = check(block.at, block.bytes); status != URMA_CR_SUCCESS) return status;
  if (!forget_abandoned()) return URMA_CR_ACK_TIMEOUT_ERR;
  return cut_store(
      block, segment_.base, kMaxLines,
      [this](const Piece& piece, const std::byte* from) { return store_lines(piece, from); },
      [this](uint64_t address, const std::byte* line, uint64_t enables) { return store_line(address, line, enables); });
}

urma_cr_status_t LanePath::fence() {
  if (!broken_) settle();
  if (broken_ && store_error_ == URMA_CR_SUCCESS) return URMA_CR_ACK_TIMEOUT_ERR;
  return std::exchange(store_error_, URMA_CR_SUCCESS);
}

bool LanePath::ask(EarlyLoad* early) {
  if (check(early->block.at, early->block.bytes) != URMA_CR_SUCCESS || !forget_abandoned() || !has_room()) return false;
  early_[lane_.next % SOFTUB_LANE_SLOTS] = early;
  ++pub_.unanswered;
  const uint64_t address = segment_.base + early->block.at;
  send_load(address - address % kLineBytes);
  return true;
}

void LanePath::finish(EarlyLoad* early) {
  if (!early->is_done && forget_abandoned()) {
    while (!early->is_done && take_answer()) {
    }
  }
  if (early->is_done) return;
  early->is_done = true;
  early->status = URMA_CR_ACK_TIMEOUT_ERR;
}

urma_cr_status_t LanePath::atomic(const RemoteAtomic&, uint64_t*) { return URMA_CR_UNSUPPORTED_OPCODE_ERR; }

}  // namespace ub::aperture
