// SPDX-License-Identifier: Apache-2.0
//
// The recording is replayed twice. The first time notes tell which channels and queues each call is about; those that
// share packets are one group. The second time the calls of groups that nobody wants are left out, and the rest is
// recorded anew. That begins when the first of the wanted channels is set up: what was before is in the image. Until
// the last of them is there everything stays, as the numbers of channels come in turn; and so do calls that make or
// destroy objects, whose ids do, too.
#include "tools/replay/minimise.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>

#include "dataplane/note_filter.h"
#include "lib/record/recorder.h"
#include "lib/record/replayer.h"

namespace ub::tools {

namespace {

using record::Replayer;
using Outcome = Replayer::Outcome;

constexpr int kCannot = 2;

// Channels and queues that share packets are one group.
class Groups {
 public:
  using Member = uint32_t;

  static Member channel(uint32_t number) { return 2 * number; }
  static Member queue(uint32_t id) { return 2 * id + 1; }

  void join(Member a, Member b) { parent_[find(a)] = find(b); }
  Member find(Member member) {
    if (member >= parent_.size()) {
      const size_t known = parent_.size();
      parent_.resize(member + 1);
      std::iota(parent_.begin() + static_cast<ptrdiff_t>(known), parent_.end(), static_cast<Member>(known));
    }
    while (parent_[member] != member) member = parent_[member] = parent_[parent_[member]];
    return member;
  }

 private:
  std::vector<Member> parent_;
};

// What notes say of channels and queues.
class Named {
 public:
  Named() {
    for (uint32_t i = 0; i < kStageCount; ++i) {
      channel_[i] = number_behind("channel", static_cast<Stage>(i));
      queue_[i] = number_behind("queue", static_cast<Stage>(i));
    }
  }
  std::optional<uint32_t> channel(const Note& note) const { return number(channel_, note); }
  std::optional<uint32_t> queue(const Note& note) const { return number(queue_, note); }

 private:
  using Members = std::array<uint32_t Note::*, kStageCount>;

  static std::optional<uint32_t> number(const Members& members, const Note& note) {
    const auto member = members[static_cast<uint32_t>(note.stage)];
    return member == nullptr ? std::nullopt : std::optional(note.*member);
  }

  Members channel_{}, queue_{};
};

// Of one run of a Core.
struct Tally {
  uint64_t calls = 0, arrived = 0;  // calls, and frames that arrived
  uint64_t sent = 0, ended = 0;     // packets and requests of what is wanted
};

bool is_sent(Stage stage) {
  return stage == Stage::kPacketSent || stage == Stage::kPacketSentAgain || stage == Stage::kPacketFake ||
         stage == Stage::kCompactSent || stage == Stage::kCompactRepeated;
}
// Of a frame that belongs to no channel, but to what they are set up by.
bool is_control(Stage stage) {
  return stage == Stage::kRecordArrived || stage == Stage::kMadArrived || stage == Stage::kConnectionState;
}
// A channel gets this number: when one is dead another may get its number.
bool is_set_up(const Note& note) {
  return note.stage == Stage::kChannelState && (note.a == static_cast<uint32_t>(tp::ChannelState::kReqSent) ||
                                                note.a == static_cast<uint32_t>(tp::ChannelState::kHalfOpen));
}
bool is_of_aperture(Call call) {
  return call == Call::kOpenHandle || call == Call::kCloseHandle || call == Call::kLoad || call == Call::kStore ||
         call == Call::kPrefetch || call == Call::kTake;
}

class Minimiser {
 public:
  Minimiser(std::string from, const Wanted& wanted) : from_(std::move(from)), wanted_(wanted) {}

  int run(const std::string& to);

 private:
  struct CallKind {
    Groups::Member member = 0;  // what it is about; 0: nothing in particular, so it stays
    bool left_out = false;
  };

  std::unique_ptr<Replayer> open();
  bool learn();
  bool find_wanted() const;
  void hear(const Note& note);
  void judge_step();
  uint32_t id_of_queue(uint32_t queue);
  void select();
  bool rerecord(const std::string& to);
  int failed(const std::string& why) const;

  std::string from_;
  const Wanted wanted_;
  const Named named_;
  Replayer* replayer_ = nullptr;  // that is running
  Groups groups_;
  std::vector<CallKind> kinds_{1};     // by number of the call
  std::map<uint32_t, uint32_t> ids_;   // of send queues, by their numbers
  // Of the call under way.
  Groups::Member about_ = 0;
  bool is_control_ = false;

  record::Selection selection_;
  std::set<Groups::Member> kept_;  // channels and queues
  // Packets sent and requests ended, by channel and by queue, in the recording.
  std::map<Groups::Member, uint64_t> done_then_;
  struct Began {
    uint64_t turn, call;  // in which a channel was set up, or first named
  };
  std::map<Groups::Member, Began> began_;
  uint64_t begin_ = 1;  // the call with which the smaller recording begins
  std::vector<std::pair<uint64_t, uint64_t>> copies_;  // calls that end copies, and those that began them
  Tally then_, now_;
};

int Minimiser::failed(const std::string& why) const {
  fmt::print(stderr, "urma_replay: {}: {}\n", from_, why);
  return kCannot;
}

// ---- the first time: what each call is about -------------------------------------------------------------------

// The jetty or JFS that has this send queue.
uint32_t Minimiser::id_of_queue(uint32_t queue) {
  const auto known = ids_.find(queue);
  if (known != ids_.end()) return known->second;
  const CoreState& s = replayer_->core().state();
  for (uint32_t id = 0; id < kIdSpace; ++id) {
    const ObjectKind kind = s.ids[id].kind;
    if ((kind == ObjectKind::kJetty || kind == ObjectKind::kJfs) && s.jettys[s.ids[id].record].queue == queue)
      return ids_[queue] = id;
  }
  return 0;
}

void Minimiser::hear(const Note& note) {
  is_control_ |= is_control(note.stage);
  const auto channel = named_.channel(note);
  auto queue = named_.queue(note);
  if (queue) queue = id_of_queue(*queue);
  if (channel && (is_set_up(note) || !began_.contains(Groups::channel(*channel))))
    began_[Groups::channel(*channel)] = {replayer_->turn(), replayer_->step().number};
  if (channel && is_sent(note.stage)) ++done_then_[Groups::channel(*channel)];
  if (queue && note.stage == Stage::kRequestEnded) ++done_then_[Groups::queue(*queue)];
  if (channel && queue) groups_.join(Groups::channel(*channel), Groups::queue(*queue));
  if (replayer_->step().received.empty()) return;
  // A frame is about one channel, and whatever else it touches belongs to that.
  for (const auto member : {channel ? Groups::channel(*channel) : 0, queue ? Groups::queue(*queue) : 0}) {
    if (member == 0) continue;
    if (about_ != 0) groups_.join(about_, member);
    about_ = member;
  }
}

void Minimiser::judge_step() {
  const record::Step& step = replayer_->step();
  CallKind kind;
  if (!step.received.empty()) {
    kind.member = about_;
    kind.left_out = about_ == 0 && !is_control_;
  } else if (step.call == Call::kOnPosted) {
    kind.member = Groups::queue(step.object);
  } else if (step.call == Call::kOnCopyDone) {
    copies_.emplace_back(step.number, replayer_->host().take_pending(step.tag));
  } else if (is_of_aperture(step.call)) {
    kind.left_out = true;
  } else if (step.call == Call::kDestroyJetty || step.call == Call::kCloseOwner) {
    ids_.clear();
  }
  kinds_.push_back(kind);
  then_.calls += 1;
  then_.arrived += step.received.empty() ? 0 : 1;
  about_ = 0;
  is_control_ = false;
}

std::unique_ptr<Replayer> Minimiser::open() {
  std::string why;
  auto replayer = Replayer::open(from_, &why);
  if (replayer == nullptr) fmt::print(stderr, "{}\n", why);
  replayer_ = replayer.get();
  return replayer;
}

bool Minimiser::learn() {
  const auto replayer = open();
  if (replayer == nullptr) return false;
  replayer->host().on_note = [this](const Note& note) { hear(note); };
  Outcome outcome;
  while ((outcome = replayer->next()) == Outcome::kStep) judge_step();
  if (outcome == Outcome::kDiffers) {
    failed("it cannot be made smaller, as its replay differs at " + replayer->fault());
    return false;
  }
  return find_wanted();
}

// What was named has done something, or is there at the end.
bool Minimiser::find_wanted() const {
  for (const uint32_t channel : wanted_.channels) {
    if (channel != 0 && channel <= replayer_->core().channel_table_size()) continue;
    failed(fmt::format("there is no channel {}; `urma_replay {} -c continue -c channels` lists those at its end",
                       channel, from_));
    return false;
  }
  for (const uint32_t queue : wanted_.queues) {
    if (queue < kIdSpace) continue;
    failed(fmt::format("there is no jetty {}", queue));
    return false;
  }
  return true;
}

// ---- the second time -------------------------------------------------------------------------------------------

void Minimiser::select() {
  std::set<Groups::Member> wanted;
  for (const uint32_t channel : wanted_.channels) wanted.insert(groups_.find(Groups::channel(channel)));
  for (const uint32_t queue : wanted_.queues) wanted.insert(groups_.find(Groups::queue(queue)));
  const auto is_wanted = [&](Groups::Member member) { return wanted.contains(groups_.find(member)); };
  selection_.queues.resize(kIdSpace);
  for (uint32_t id = 0; id < kIdSpace; ++id) selection_.queues[id] = is_wanted(Groups::queue(id));
  for (const CallKind& kind : kinds_)
    selection_.calls.push_back(!kind.left_out && (kind.member == 0 || is_wanted(kind.member)));
  for (const auto& [channel, began] : began_) {
    if (!is_wanted(channel)) continue;
    begin_ = selection_.from == 1 ? began.turn : std::min(begin_, began.turn);
    selection_.from = std::max(selection_.from, began.call + 1);
  }
  for (const auto& [call, began] : copies_) selection_.calls[call] = began < selection_.from;
  for (const auto& [member, done] : done_then_) {
    if (!is_wanted(member)) continue;
    kept_.insert(member);
    (member % 2 == 0 ? then_.sent : then_.ended) += done;
  }
}

bool Minimiser::rerecord(const std::string& to) {
  const auto replayer = open();
  if (replayer == nullptr) return false;
  record::Recorder recorder;
  std::string why;
  replayer->host().on_note = nullptr;
  while (replayer->step().number + 1 < begin_) replayer->next();
  if (!replayer->rerecord(to, selection_, &recorder, &why)) {
    failed(why);
    return false;
  }
  ids_.clear();
  replayer->host().on_note = [this](const Note& note) {
    const auto channel = named_.channel(note);
    if (channel && is_sent(note.stage) && kept_.contains(Groups::channel(*channel))) ++now_.sent;
    if (note.stage == Stage::kRequestEnded && kept_.contains(Groups::queue(id_of_queue(note.object)))) ++now_.ended;
  };
  Outcome outcome;
  while ((outcome = replayer->next()) == Outcome::kStep) {
    const record::Step& step = replayer->step();
    if (step.call == Call::kDestroyJetty || step.call == Call::kCloseOwner) ids_.clear();
    if (!selection_.takes_call(step.number)) continue;
    ++now_.calls;
    now_.arrived += step.received.empty() ? 0 : 1;
  }
  const bool whole = outcome == Outcome::kEnd && recorder.recorded();
  if (!whole) failed(outcome == Outcome::kEnd ? record::sentence_of(recorder.ended()) : replayer->fault());
  recorder.stop(record::Ended::kStopped);
  return whole;
}

int Minimiser::run(const std::string& to) {
  if (!learn()) return kCannot;
  select();
  if (!rerecord(to)) return kCannot;
  std::string channels, queues;
  for (const Groups::Member member : kept_) (member % 2 == 0 ? channels : queues) += fmt::format(" {}", member / 2);
  fmt::print("channels:{}; queues:{}\n", channels.empty() ? " none" : channels, queues.empty() ? " none" : queues);
  fmt::print("                     recorded         here\n");
  const std::pair<const char*, uint64_t Tally::*> lines[] = {{"calls", &Tally::calls},
                                                             {"frames in", &Tally::arrived},
                                                             {"their packets", &Tally::sent},
                                                             {"their requests", &Tally::ended}};
  for (const auto& [what, count] : lines) fmt::print("{:16} {:12} {:12}\n", what, then_.*count, now_.*count);
  return 0;
}

}  // namespace

int minimise(const std::string& from, const std::string& to, const Wanted& wanted) {
  return Minimiser(from, wanted).run(to);
}

}  // namespace ub::tools
