// SPDX-License-Identifier: Apache-2.0
//
// A hash table in remote memory, used by any number of clients at the same time. Zeroed memory is an empty table, and
// whoever holds it does nothing. Keys are numbers other than 0, values are texts. Nothing is ever removed.
//
// A slot is one line of 64 bytes. Its key is put there once, by a compare-and-swap of 0. Its version is odd while a
// client writes the value; a compare-and-swap makes it so. Whoever reads the same even version before and after the
// value has read one that was there as a whole. Slot 0 has no key: it counts clients.
//
// Thread: one for each object. Errors: far_error of an access; ToolErrors: the table is full, a text is too long, or a
// slot stays locked, since the client that locked it has died.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <softub_far.hpp>
#include <string>

namespace ub::apps {

class Table {
 public:
  static constexpr size_t kMostText = 47;

  explicit Table(urma_target_seg_t*);

  void put(uint64_t key, const std::string& text);
  std::optional<std::string> get(uint64_t key);
  // Each call returns another number, whichever client makes it: 1, 2 and so on.
  uint64_t new_client();

 private:
  struct alignas(64) Slot {
    uint64_t key;
    uint64_t version;  // even: may be read; 0: no value yet
    std::array<char, kMostText + 1> text;
  };
  static_assert(sizeof(Slot) == 64);
  using SlotPtr = softub::far_ptr<Slot>;

  // Calls visit(slot, its key) for the slots where the key may be, until it returns true. False: it never did.
  template <class Visit>
  bool probe(uint64_t key, Visit visit);
  std::optional<SlotPtr> find(uint64_t key);
  SlotPtr find_or_claim(uint64_t key);
  uint64_t lock(SlotPtr);

  softub::far_handle handle_;
  SlotPtr slots_;
  uint64_t count_;
};

}  // namespace ub::apps
