// SPDX-License-Identifier: Apache-2.0
//
// movs, stos, lods, scas and cmps, with and without repetition. Source, destination or both lie in the window. As on
// real memory the registers say after each step how far it came, so that an error in the middle can be repaired and the
// instruction goes on. When the next element lies outside of the window, the CPU is left to go on by itself.
#include <algorithm>
#include <cstring>

#include "lib/urma/aperture/uncached/run.h"
#include "lib/urma/aperture/uncached/x86_access.h"

namespace ub::aperture {
namespace {

enum class Kind : uint8_t { kMove, kCompare, kStore, kLoad, kScan };
enum class Repeat : uint8_t { kOnce, kCount, kWhileEqual, kWhileDifferent };

Kind kind_of(uint8_t opcode) {
  switch (opcode & 0xfe) {
    case 0xa4:
      return Kind::kMove;
    case 0xa6:
      return Kind::kCompare;
    case 0xaa:
      return Kind::kStore;
    case 0xac:
      return Kind::kLoad;
    default:
      return Kind::kScan;
  }
}

// Both prefixes repeat; which of them it is makes a difference to comparisons alone. The last one counts.
Repeat repeat_of(const Instruction& instruction, Kind kind) {
  const uint8_t* const prefixes = instruction.bytes;
  for (int i = instruction.info.raw.prefix_count - 1; i >= 0; --i) {
    if (prefixes[i] != 0xf2 && prefixes[i] != 0xf3) continue;
    if (kind != Kind::kCompare && kind != Kind::kScan) return Repeat::kCount;
    return prefixes[i] == 0xf3 ? Repeat::kWhileEqual : Repeat::kWhileDifferent;
  }
  return Repeat::kOnce;
}

class StringRun {
 public:
  explicit StringRun(const Access& access)
      : access_(access),
        kind_(kind_of(access.instruction.info.opcode)),
        repeat_(repeat_of(access.instruction, kind_)),
        bytes_(access.instruction.operands[0].size / 8U),
        is_backward_((access.state.flags & kDirectionFlag) != 0),
        source_base_(base_of_source(access.instruction)) {}

  Outcome run_all() {
    if (!touches_window()) return unsupported("it accesses another place, too");
    while (count() != 0) {
      if (!touches_window()) return {};
      const uint64_t elements = elements_at_once();
      const Outcome outcome = step(elements);
      if (!outcome.ok()) return outcome;
      advance(elements);
      if (is_finished_by_comparison()) break;
    }
    access_.state.ip = access_.instruction.next();
    return {};
  }

 private:
  static constexpr uint64_t kPageBytes = 4096;

  static uint64_t base_of_source(const Instruction& instruction) {
    if (instruction.has(ZYDIS_ATTRIB_HAS_SEGMENT_FS)) return fs_base();
    if (instruction.has(ZYDIS_ATTRIB_HAS_SEGMENT_GS)) return gs_base();
    return 0;
  }

  // Registers of addresses and of the count have the width of addresses.
  uint64_t value(Register number) const {
    const uint64_t value = access_.state.general[number];
    return access_.instruction.info.address_width == 32 ? static_cast<uint32_t>(value) : value;
  }
  void set(Register number, uint64_t value) {
    access_.state.general[number] = access_.instruction.info.address_width == 32 ? static_cast<uint32_t>(value) : value;
  }

  bool has_source() const { return kind_ == Kind::kMove || kind_ == Kind::kCompare || kind_ == Kind::kLoad; }
  bool has_destination() const { return kind_ != Kind::kLoad; }
  uint64_t source() const { return source_base_ + value(kRsi); }
  uint64_t destination() const { return value(kRdi); }
  uint64_t count() const { return repeat_ == Repeat::kOnce ? (is_done_ ? 0 : 1) : value(kRcx); }

  bool touches_window() const {
    return (has_source() && access_.memory.touches(source(), bytes_)) ||
           (has_destination() && access_.memory.touches(destination(), bytes_));
  }

  // How many elements one step may take without that anybody can tell. Moves and fills upwards go by pieces in which no
  // operand enters or leaves the window, ordinary memory does not go into another page, where it could fault, and no
  // element is read that the step itself has written.
  uint64_t elements_at_once() const {
    if (is_backward_ || (kind_ != Kind::kMove && kind_ != Kind::kStore)) return 1;
    uint64_t bytes = std::min<uint64_t>(WindowMemory::kMostBytes, reach(destination()));
    if (kind_ == Kind::kMove) {
      bytes = std::min(bytes, reach(source()));
      if (const uint64_t ahead = destination() - source(); ahead != 0) bytes = std::min(bytes, ahead);
    }
    return std::clamp<uint64_t>(bytes / bytes_, 1, count());
  }
  uint64_t reach(uint64_t address) const {
    const uint64_t alike = access_.memory.bytes_alike(address);
    return access_.memory.contains(address, 1) ? alike : std::min(alike, kPageBytes - address % kPageBytes);
  }

  Outcome step(uint64_t elements) {
    switch (kind_) {
      case Kind::kMove:
        return move(static_cast<uint32_t>(elements) * bytes_);
      case Kind::kStore:
        return fill(static_cast<uint32_t>(elements) * bytes_);
      case Kind::kLoad:
        return with_rax(WithRax::kLoad, source(), &access_.state);
      case Kind::kScan:
        return with_rax(WithRax::kCompare, destination(), &access_.state);
      default:
        return compare();
    }
  }

  Outcome move(uint32_t bytes) {
    std::byte piece[WindowMemory::kMostBytes];
    const urma_cr_status_t loaded = access_.memory.load(source(), piece, bytes);
    if (loaded != URMA_CR_SUCCESS) return {loaded, source()};
    return {access_.memory.store(destination(), piece, bytes), destination()};
  }

  Outcome fill(uint32_t bytes) {
    std::byte piece[WindowMemory::kMostBytes];
    for (uint32_t i = 0; i < bytes; i += bytes_) std::memcpy(piece + i, &access_.state.general[kRax], bytes_);
    return {access_.memory.store(destination(), piece, bytes), destination()};
  }

  // The first operand takes the place of rax.
  Outcome compare() {
    MachineState with_first = access_.state;
    const urma_cr_status_t loaded =
        access_.memory.load(source(), reinterpret_cast<std::byte*>(&with_first.general[kRax]), bytes_);
    if (loaded != URMA_CR_SUCCESS) return {loaded, source()};
    const Outcome outcome = with_rax(WithRax::kCompare, destination(), &with_first);
    access_.state.flags = with_first.flags;
    return outcome;
  }

  Outcome with_rax(WithRax what, uint64_t address, MachineState* state) {
    const Rewritten rewritten = write_with_rax(what, bytes_);
    const void* code = access_.code.find_or_add(rewritten);
    if (code == nullptr) return unsupported(kNoRoom);
    OperandCopy copy(address);
    const urma_cr_status_t loaded = access_.memory.load(address, copy.bytes(), bytes_);
    if (loaded != URMA_CR_SUCCESS) return {loaded, address};
    run(rewritten, code, copy.bytes(), Vectors::kNone, state);
    return {};
  }

  void advance(uint64_t elements) {
    const uint64_t bytes = is_backward_ ? 0 - elements * bytes_ : elements * bytes_;
    if (has_source()) set(kRsi, value(kRsi) + bytes);
    if (has_destination()) set(kRdi, value(kRdi) + bytes);
    if (repeat_ != Repeat::kOnce) set(kRcx, value(kRcx) - elements);
    is_done_ = true;
  }

  bool is_finished_by_comparison() const {
    const bool is_equal = (access_.state.flags & kZeroFlag) != 0;
    return (repeat_ == Repeat::kWhileEqual && !is_equal) || (repeat_ == Repeat::kWhileDifferent && is_equal);
  }

  const Access& access_;
  const Kind kind_;
  const Repeat repeat_;
  const uint32_t bytes_;  // of an element
  const bool is_backward_;
  const uint64_t source_base_;
  bool is_done_ = false;  // an instruction without repetition
};

}  // namespace

Outcome carry_out_string(const Access& access) { return StringRun(access).run_all(); }

}  // namespace ub::aperture
