// SPDX-License-Identifier: Apache-2.0
//
// Gets: by a hint, or by the index.
#include <algorithm>

#include "apps/kv_store/engine.h"
#include "tools/common/tool_error.h"

namespace ub::kv {

using tools::ToolError;

namespace {

// Each of them means that somebody replaced the record meanwhile, so only a broken server lets a client come so far.
constexpr uint32_t kMostAttempts = 100'000;
constexpr uint32_t kMostLoad = 8192;  // bytes of one call

}  // namespace

bool Client::Engine::start_get(std::string_view key, uint64_t cookie) {
  Operation* get = begin(key, cookie);
  if (get == nullptr) return false;
  if (!error_.empty()) {
    complete(*get, Status::kFailed);
  } else if (key.empty() || key.size() > geometry().most_key) {
    complete(*get, Status::kTooLarge);
  } else {
    try {
      look_up(*get);
      run_loaded();
      if (reads_at_once_) take_completions();
    } catch (const std::exception& e) {
      fail(e.what());
    }
  }
  return true;
}

void Client::Engine::look_up(Operation& get) {
  const Hints::Hint* hint = hints_.find(get.hash);
  if (hint == nullptr) {
    ++counters_.hint_misses;
    return read_lines(get);
  }
  get.place = {hint->slot, hint->word};
  fetch(get, Step::kHinted, geometry().unit_at(hint->word.unit()), uint64_t{hint->word.units()} * kUnit);
}

// Whoever exchanges a slot marks the old record first. So a record without the mark is what its slot named when its
// head was read.
void Client::Engine::on_hinted(Operation& get) {
  const auto record = open_record(get.buffer, get.place.word);
  if (!record || record->stale || record->key != get.key) {
    ++counters_.hint_misses;
    hints_.forget(get.hash);
    return read_lines(get);
  }
  ++counters_.hint_hits;
  found(get, get.place, *record);
}

// Begins with the home of the key. Other lines are read only if no record that it names is the one.
void Client::Engine::read_lines(Operation& get) {
  get.candidates.clear();
  get.candidate = 0;
  get.reach = UINT32_MAX;  // not known before the home was read
  fetch(get, Step::kLines, geometry().line_at(get.hash.home(geometry().lines)), kUnit);
}

void Client::Engine::on_lines(Operation& get) {
  const uint64_t home = get.hash.home(geometry().lines);
  const auto* lines = reinterpret_cast<const IndexLine*>(get.buffer);
  const bool is_home = get.reach == UINT32_MAX;
  const uint64_t first = is_home ? home : home + 1;
  const uint32_t count = is_home ? 1 : get.reach;
  for (uint32_t line = 0; line < count; ++line) {
    for (uint32_t slot = 0; slot < kSlots; ++slot) {
      const Word word(lines[line].slots[slot]);
      if (word && word.tag() == get.hash.tag())
        get.candidates.push_back({geometry().slot_at(first + line, slot), word});
    }
  }
  get.reach = is_home ? static_cast<uint32_t>(std::min<uint64_t>(lines->reach, Geometry::kMostReach)) : 0;
  next_candidate(get);
}

void Client::Engine::next_candidate(Operation& get) {
  if (get.candidate < get.candidates.size()) {
    const Word word = get.candidates[get.candidate].word;
    if (uint64_t{word.unit()} + word.units() > geometry().heap_units || word.units() * kUnit > buffer_bytes_) {
      throw ToolError("the index in the server's memory is damaged");
    }
    return fetch(get, Step::kRecord, geometry().unit_at(word.unit()), uint64_t{word.units()} * kUnit);
  }
  if (get.reach != 0) {
    const uint64_t home = get.hash.home(geometry().lines);
    return fetch(get, Step::kLines, geometry().line_at(home + 1), uint64_t{get.reach} * kUnit);
  }
  complete(get, Status::kNotFound);
}

// It counts even with a mark: the slot named it when the slot was read.
void Client::Engine::on_record(Operation& get) {
  const Place place = get.candidates[get.candidate];
  const auto record = open_record(get.buffer, place.word);
  if (!record) {
    ++counters_.torn_reads;
    if (++get.attempts == kMostAttempts) throw ToolError("a record in the server's memory is damaged");
    return read_lines(get);
  }
  if (record->key == get.key) return found(get, place, *record);
  ++get.candidate;
  next_candidate(get);
}

void Client::Engine::found(Operation& get, const Place& place, const RecordView& record) {
  if (!record.stale) hints_.remember(get.hash, place.slot, place.word);
  get.value = record.value;
  complete(get, Status::kOk);
}

// ---- bytes of the server's memory -----------------------------------------------------------------------------

void Client::Engine::fetch(Operation& get, Step step, uint64_t at, uint64_t bytes) {
  get.step = step;
  if (aperture_) return load(get, at, bytes);
  urma_sge_t from = remote(at, bytes), to = piece(get.buffer, bytes, segment_);
  urma_jfs_wr_t request = {};
  request.opcode = URMA_OPC_READ;
  request.flag.bs.complete_enable = 1;
  request.tjetty = server_.get();
  request.user_ctx = get.number;
  request.rw.src = {&from, 1};
  request.rw.dst = {&to, 1};
  get.waits = 1;
  post(accesses_, &request);
}

void Client::Engine::load(Operation& get, uint64_t at, uint64_t bytes) {
  for (uint64_t done = 0; done < bytes;) {
    const auto part = static_cast<uint32_t>(std::min<uint64_t>(bytes - done, kMostLoad));
    const urma_cr_status_t status = softub_load(aperture_.get(), at + done, get.buffer + done, part);
    if (status == URMA_CR_ACK_TIMEOUT_ERR) throw ToolError("the server is gone or does not answer");
    if (status != URMA_CR_SUCCESS) throw ToolError("the server's memory refuses a load");
    done += part;
  }
  loaded_.push_back(&get);
}

// Loads are done when their call returns, so what follows them is done here, and not deep inside each other.
void Client::Engine::run_loaded() {
  while (!loaded_.empty()) {
    Operation* get = loaded_.back();
    loaded_.pop_back();
    advance(*get);
  }
}

}  // namespace ub::kv
