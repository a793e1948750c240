// SPDX-License-Identifier: Apache-2.0
//
// What happened last in a NIC (lib/transport/looking/last_notes.h): kept in its statistics page, and told when a peer
// was given up, or when the program dies of a failed check.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <string_view>

#include "dataplane/nic.h"
#include "lib/base/assert.h"
#include "lib/transport/looking/sentence.h"
#include "lib/transport/tp/channel.h"

namespace ub {
namespace {

constexpr size_t kToldOfADeath = 12;
constexpr size_t kToldOfAnAssertion = 64;
constexpr Duration kBetweenDeaths = seconds(1);

// The newest ones, the oldest of them first.
template <size_t kMost>
class Newest {
 public:
  explicit Newest(const LastNotes& notes) {
    notes.each([this](const LastNote& n) { notes_[count_++ % kMost] = n; });
  }
  template <class Fn>
  void each(Fn fn) const {
    for (size_t i = count_ - std::min(count_, kMost); i != count_; ++i) fn(notes_[i % kMost]);
  }

 private:
  std::array<LastNote, kMost> notes_;
  size_t count_ = 0;
};

struct Line {
  char text[kSentenceRoom + 64];
};
// `now` is of the clock of notes.
Line line_of(const LastNote& n, uint64_t now) {
  char sentence[kSentenceRoom];
  const std::string_view said = write_sentence(n.note, sentence);
  Line line;
  const double before = static_cast<double>(now - n.last_ns) / 1e9;
  char times[32] = "";
  if (n.times > 1) std::snprintf(times, sizeof times, " (%u times)", n.times);
  std::snprintf(line.text, sizeof line.text, "  %.6f s before: %.*s%s", before, static_cast<int>(said.size()),
                said.data(), times);
  return line;
}

// And not a former channel of that number.
bool was_given_up(const LastNotes& notes, uint32_t channel) {
  bool given_up = false;
  notes.each([&](const LastNote& n) {
    if (n.note.object != channel) return;
    if (n.note.stage == Stage::kChannelGivenUp) given_up = true;
    if (n.note.stage == Stage::kChannelState && n.note.a != static_cast<uint32_t>(tp::ChannelState::kDead))
      given_up = false;
  });
  return given_up;
}

// ---- a check has failed -----------------------------------------------------------------------------------------

std::atomic<const LastNotes*> newest_nic{nullptr};

// It allocates nothing and takes no lock: the program is broken.
void say_last_words() {
  const LastNotes* notes = newest_nic.load(std::memory_order_acquire);
  if (notes == nullptr) return;
  const uint64_t now = TscClock::monotonic_ns();
  std::fprintf(stderr, "what happened last in the NIC of this process:\n");
  Newest<kToldOfAnAssertion>(*notes).each(
      [now](const LastNote& n) { std::fprintf(stderr, "%s\n", line_of(n, now).text); });
}

}  // namespace

void Nic::keep_last_notes() {
  if (statistics_ == nullptr) last_notes_ = std::make_unique<LastNotes>();
  LastNotes* notes = statistics_ != nullptr ? statistics_->last_notes() : last_notes_.get();
  worker_->keep_last_notes(notes);
  static std::once_flag once;
  std::call_once(once, [] { set_last_words(say_last_words); });
  newest_nic.store(notes, std::memory_order_release);
}

void Nic::forget_last_notes() {
  const LastNotes* mine = worker_->core().state().last_notes;
  newest_nic.compare_exchange_strong(mine, nullptr);
  worker_->keep_last_notes(nullptr);
}

// Owned. An orderly end needs no words.
void Nic::tell_why_it_died(uint32_t tpn) {
  const bool told_just_now = told_of_death_at_.ns != 0 && worker_->now() < told_of_death_at_ + kBetweenDeaths;
  if (!notice_ || told_just_now) return;
  const LastNotes& notes = *worker_->core().state().last_notes;
  if (!was_given_up(notes, tpn & ((1u << tp::kTpnIndexBits) - 1))) return;
  told_of_death_at_ = worker_->now();
  notice_(
      "a peer was given up because it was silent for too long; what happened last (urma_admin show events has more):");
  const uint64_t now = TscClock::monotonic_ns();
  Newest<kToldOfADeath>(notes).each([&](const LastNote& n) { notice_(line_of(n, now).text); });
}

}  // namespace ub
