// SPDX-License-Identifier: Apache-2.0
#include "lib/urma/aperture/frames_path.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace ub::aperture {
namespace {

using bypass::Block;
using bypass::Calls;
using bypass::Outcome;

bypass::Block block_of(const Piece& piece) {
  return {piece.address, static_cast<uint8_t>(std::countr_zero(piece.lines))};
}

urma_cr_status_t status_of(Outcome outcome) {
  return outcome == Outcome::kOk        ? URMA_CR_SUCCESS
         : outcome == Outcome::kRefused ? URMA_CR_REM_ACCESS_ABORT_ERR
                                        : URMA_CR_ACK_TIMEOUT_ERR;
}

}  // namespace

// ---- life ------------------------------------------------------------------------------------------------------

FramesPath::FramesPath(Way way, const RemoteSegment& segment)
    : way_(std::move(way)),
      segment_(segment),
      most_lines_(std::min(way_.most_bytes, kMaxBlockBytes) / kLineBytes),
      buffer_(std::make_unique_for_overwrite<std::byte[]>(size_t{kAtOnce} * most_lines_ * kLineBytes)) {}

FramesPath::~FramesPath() { break_off(); }

void FramesPath::break_off() {
  broken_ = true;
  if (way_.close) std::exchange(way_.close, nullptr)();
}

urma_cr_status_t FramesPath::check(uint64_t at, uint32_t bytes) const {
  if (broken_) return URMA_CR_ACK_TIMEOUT_ERR;
  if (bytes == 0 || bytes > kMaxBlockBytes) return URMA_CR_LOC_LEN_ERR;
  return segment_.contains(at, bytes) ? URMA_CR_SUCCESS : URMA_CR_REM_ACCESS_ABORT_ERR;
}

urma_cr_status_t FramesPath::run(bypass::Turns& turns) {
  const bypass::Ran ran = way_.run(turns, patience_);
  if (ran == bypass::Ran::kInside) return URMA_CR_LOC_OPERATION_ERR;
  if (ran == bypass::Ran::kLate) break_off();
  return broken_ ? URMA_CR_ACK_TIMEOUT_ERR : URMA_CR_SUCCESS;
}

urma_cr_status_t FramesPath::try_out(Duration patience) {
  std::byte probe[1];
  const LoadBlock block{0, probe, 1};
  patience_ = patience;
  const urma_cr_status_t status = load({&block, 1});
  patience_ = kPatience;
  return status;
}

// ---- loads -----------------------------------------------------------------------------------------------------

// As many as may be under way. Their bytes come into the path's memory.
class FramesPath::Loads final : public bypass::Turns {
 public:
  explicit Loads(FramesPath& path) : path_(path) {}

  bool full() const { return count_ == kAtOnce; }
  void add(const Piece& piece, std::byte* to) {
    pieces_[count_] = piece;
    to_[count_++] = to;
  }

  bool turn(Calls& calls) override {
    while (sent_ < count_ && !path_.broken_) {
      const Status status = calls.load(block_of(pieces_[sent_]), path_.place(sent_), &tickets_[sent_]);
      if (status == Status::kBusy) break;
      status == Status::kOk ? static_cast<void>(++sent_) : static_cast<void>(path_.broken_ = true);
    }
    while (taken_ < sent_) {
      const Outcome outcome = calls.take(tickets_[taken_]);
      if (outcome == Outcome::kPending) return false;
      ++taken_;
      if (outcome == Outcome::kUnanswered) path_.broken_ = true;
      if (error_ == URMA_CR_SUCCESS) error_ = status_of(outcome);
    }
    return sent_ == count_ || path_.broken_;
  }

  // The bytes, if all came; else the first error.
  urma_cr_status_t deliver() const {
    for (uint32_t i = 0; i < count_ && error_ == URMA_CR_SUCCESS; ++i) {
      std::memcpy(to_[i], path_.place(i) + pieces_[i].offset, pieces_[i].bytes);
    }
    return error_;
  }

 private:
  FramesPath& path_;
  uint32_t count_ = 0, sent_ = 0, taken_ = 0;
  urma_cr_status_t error_ = URMA_CR_SUCCESS;
  Piece pieces_[kAtOnce];
  std::byte* to_[kAtOnce];
  uint32_t tickets_[kAtOnce];
};

urma_cr_status_t FramesPath::load(std::span<const LoadBlock> blocks) {
  for (const LoadBlock& block : blocks) {
    if (const urma_cr_status_t status = check(block.at, block.bytes); status != URMA_CR_SUCCESS) return status;
  }
  if (const urma_cr_status_t status = settle(); status != URMA_CR_SUCCESS) return status;
  urma_cr_status_t first_error = URMA_CR_SUCCESS;
  for (PieceWalk walk(blocks, segment_.base, most_lines_); !walk.is_over();) {
    Loads loads(*this);
    while (!walk.is_over() && !loads.full()) {
      const Piece piece = walk.piece();
      loads.add(piece, walk.to());
      walk.pass(piece);
    }
    if (const urma_cr_status_t status = run(loads); status != URMA_CR_SUCCESS) return status;
    const urma_cr_status_t status = loads.deliver();
    if (first_error == URMA_CR_SUCCESS) first_error = status;
  }
  return first_error;
}

// ---- stores ----------------------------------------------------------------------------------------------------

// Sends one.
class FramesPath::Store final : public bypass::Turns {
 public:
  Store(FramesPath& path, const bypass::StoreRequest& request) : path_(path), request_(request) {}

  bool turn(Calls& calls) override {
    path_.take_answers(calls);
    if (path_.broken_) return true;
    if (path_.sent_ - path_.answered_ == kAtOnce) return false;
    const Status status = calls.store(request_, &path_.stores_[path_.sent_ % kAtOnce]);
    if (status == Status::kBusy) return false;
    status == Status::kOk ? static_cast<void>(++path_.sent_) : static_cast<void>(path_.broken_ = true);
    return true;
  }

 private:
  FramesPath& path_;
  const bypass::StoreRequest& request_;
};

// Waits until none is without an answer.
class FramesPath::Answers final : public bypass::Turns {
 public:
  explicit Answers(FramesPath& path) : path_(path) {}

  bool turn(Calls& calls) override {
    path_.take_answers(calls);
    return path_.sent_ == path_.answered_;
  }

 private:
  FramesPath& path_;
};

void FramesPath::take_answers(Calls& calls) {
  for (; answered_ != sent_; ++answered_) {
    const Outcome outcome = calls.take(stores_[answered_ % kAtOnce]);
    if (outcome == Outcome::kPending) return;
    if (outcome == Outcome::kUnanswered) broken_ = true;
    if (store_error_ == URMA_CR_SUCCESS) store_error_ = status_of(outcome);
  }
}

urma_cr_status_t FramesPath::send(const bypass::StoreRequest& request) {
  Store store(*this, request);
  return run(store);
}

urma_cr_status_t FramesPath::store(const StoreBlock& block) {
  if (const urma_cr_status_t status = check(block.at, block.bytes); status != URMA_CR_SUCCESS) return status;
  const auto store_lines = [this](const Piece& piece, const std::byte* from) {
    std::memcpy(place(0), from, piece.bytes);
    return send({.block = block_of(piece), .from = place(0)});
  };
  const auto store_line = [this](uint64_t address, const std::byte* line, uint64_t enables) {
    return send({.block = {address, 0}, .from = line, .enables = enables == kAllBytes ? nullptr : &enables});
  };
  return cut_store(block, segment_.base, most_lines_, store_lines, store_line);
}

urma_cr_status_t FramesPath::settle() {
  if (broken_) return URMA_CR_ACK_TIMEOUT_ERR;
  if (sent_ == answered_) return URMA_CR_SUCCESS;
  Answers answers(*this);
  return run(answers);
}

urma_cr_status_t FramesPath::fence() {
  const urma_cr_status_t status = settle();
  if (status == URMA_CR_LOC_OPERATION_ERR || store_error_ == URMA_CR_SUCCESS) return status;
  return std::exchange(store_error_, URMA_CR_SUCCESS);
}

}  // namespace ub::aperture
