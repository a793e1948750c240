// SPDX-License-Identifier: Apache-2.0
//
// Which states a run has been in: coverage of state, where coverage of branches says too little. Looks at a Core after
// every packet that arrives and every turn of its driver; changes nothing and draws no random number.
#pragma once

#include <bitset>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/transport/bypass/asked.h"
#include "lib/transport/bypass/owed_answers.h"
#include "lib/transport/core_state.h"
#include "lib/transport/roce/state.h"
#include "tests/sim/model.h"
#include "tests/sim/options.h"

namespace ub::sim {

enum class ReachedState : uint8_t {
#define X(name, sentence) k##name,
#include "tests/sim/reached.def"
#undef X
  kCount
};
inline constexpr size_t kReachedStates = static_cast<size_t>(ReachedState::kCount);

using StateSet = std::bitset<kReachedStates>;
const char* sentence_of(ReachedState);

class Reached {
 public:
  void look(uint32_t node, uint32_t epoch, const CoreState&, const roce::State*);
  void look_at_bypass(const bypass::AskedState&, const bypass::OwedAnswers&);
  void sent_again(std::span<const std::byte> frame);
  void before_reset(const CoreState&, const Queue&);
  void judged_last_byte(const Options&, const Wr&);
  void reach(ReachedState s, bool yes = true) {
    if (yes) states_.set(static_cast<size_t>(s));
  }
  const StateSet& states() const { return states_; }

 private:
  // A stretch of time in which something was in flight, and in which one recovery block was in use.
  struct Track {
    uint32_t id = 0;  // TPN or number of the queue pair
    bool calm = false;         // at the last look
    uint64_t retransmits = 0;  // the same
    bool busy = false, recovering = false;
    Psn busy_since, recovering_since;
    bool several_paths = false;
    bool gathered = false;  // within the last window of packets
    Psn gathered_at;
    uint32_t gathered_for = 0;
  };
  struct Instance {
    uint32_t epoch = 0;
    std::vector<Track> channels, qps;
  };

  void look_at_channel(const CoreState&, const tp::Channel&, Track&);
  void look_at_busy_channel(const tp::Channel&, Track&);
  void look_at_paths(const CoreState&, const tp::Channel&);
  void look_at_cna(const CoreState&, const tp::Channel&);
  void look_at_rol(const CoreState&, const tp::Channel&);
  void look_at_compact(const CoreState&, const tp::Channel&);
  void look_at_receiver(const CoreState&, const tp::Channel&);
  void look_at_qp(const CoreState&, const roce::Qp&, Track&);
  void look_at_context(const CoreState&, const SequenceContext&);
  void look_at_tables(const CoreState&);

  std::vector<Instance> instances_;
  StateSet states_;
};

}  // namespace ub::sim
