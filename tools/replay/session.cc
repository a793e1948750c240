// SPDX-License-Identifier: Apache-2.0
#include "tools/replay/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "dataplane/words.h"
#include "lib/transport/looking/sentence.h"
#include "lib/transport/wire/pretty_print.h"

namespace ub::tools {

namespace {

constexpr const char* kCommands =
    "next [N]        N calls on; 1 if no number is given\n"
    "to N            on to call N\n"
    "until FILTER    on to the first note that a filter takes: until stage=kPacketsLost channel=3\n"
    "continue        on to the end, or to where the replay differs\n"
    "trace [FILTER]  print notes as they come, all or those that a filter takes; trace off\n"
    "frames on|off   print frames as they come and leave; their payload is not recorded\n"
    "where           the call that was made last\n"
    "last [N]        the last notes before this moment; 20 if no number is given\n"
    "channels        each with its state, packets in flight, window and losses\n"
    "queues          each send queue with what is posted, started and retired\n"
    "completions     each JFC with what it has\n"
    "counters        those that are not 0; they began with the NIC\n"
    "help, quit\n";

std::string time_text(Instant at) { return fmt::format("{:.9f} s", static_cast<double>(at.ns) / 1e9); }

}  // namespace

Session::Session(record::Replayer& replayer, std::FILE* out) : replayer_(replayer), out_(out) {
  replayer_.host().on_note = [this](const Note& note) { hear(note); };
}

const char* Session::commands() { return kCommands; }

void Session::describe() const {
  const record::FileHeader& h = replayer_.header();
  const auto seconds = static_cast<std::time_t>(h.began_ns / 1'000'000'000);
  char when[32];
  std::tm utc{};
  std::strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", gmtime_r(&seconds, &utc));
  fmt::print(out_, "process {}, {} UTC, file {}; version {}, commit {}\n", h.process, when, h.number + 1, h.version,
             h.commit);
  if (std::string_view(h.commit) != record::built_commit())
    fmt::print(out_, "this program is of commit {}: where the two differ, so may the replay\n", record::built_commit());
  fmt::print(out_, "{} bytes; it ended because {}\n", h.written.load(),
             record::sentence_of(static_cast<record::Ended>(h.ended.load())));
  if (replayer_.is_cut()) fmt::print(out_, "the end of the file is missing\n");
}

// ---- going on --------------------------------------------------------------------------------------------------

template <class Done>
Session::Said Session::advance(Done done) {
  for (;;) {
    const auto outcome = replayer_.next();
    if (outcome == record::Replayer::Outcome::kEnd) {
      fmt::print(out_, "the recording ends behind call {}\n", replayer_.step().number);
      return Said::kGoOn;
    }
    if (frames_ && !replayer_.step().received.empty())
      tell_frame("in", replayer_.step().link, replayer_.step().received);
    if (frames_ && replayer_.step().sent != nullptr)
      for (const record::SentFrame& sent : *replayer_.step().sent) tell_frame("out", sent.link, sent.frame);
    if (outcome == record::Replayer::Outcome::kDiffers) {
      fmt::print(out_, "the replay differs at {}\n", replayer_.fault());
      return Said::kDiffers;
    }
    if (!done()) continue;
    tell_step();
    return Said::kGoOn;
  }
}

void Session::tell_step() const {
  const record::Step& step = replayer_.step();
  fmt::print(out_, "call {}, at {}: {}", step.number, time_text(step.now),
             kCallNames[static_cast<uint32_t>(step.call)]);
  if (!step.received.empty()) fmt::print(out_, ", {} bytes over link {}", step.received.size(), step.link);
  if (step.call == Call::kOnPosted || step.call == Call::kOnArmed) fmt::print(out_, " {}", step.object);
  fmt::print(out_, "\n");
}

void Session::tell_frame(const char* way, uint32_t link, std::span<const std::byte> frame) const {
  char line[512];
  wire::format_packet(frame, line, sizeof line);
  fmt::print(out_, "  {:3} {} {}\n", way, link, line);
}

Session::Said Session::go_until(std::string_view filter) {
  std::string why;
  NoteFilter wanted;
  if (filter.empty() || !wanted.parse(filter, &why)) return mistake(filter.empty() ? "until what?" : why);
  until_ = std::move(wanted);
  met_ = false;
  const Said said = advance([this] { return met_; });
  until_.reset();
  return said;
}

// ---- notes -----------------------------------------------------------------------------------------------------

void Session::hear(const Note& note) {
  const Instant at = replayer_.core().state().now;
  last_.add({.at = at, .note = note});
  if (trace_ && trace_->takes(note)) tell_note(at, note);
  if (until_ && until_->takes(note)) {
    met_ = true;
    tell_note(at, note);
  }
}

void Session::tell_note(Instant at, const Note& note) const {
  char line[kSentenceRoom];
  fmt::print(out_, "  {}\n", write_sentence(at, note, line));
}

Session::Said Session::set_trace(std::string_view filter) {
  if (filter == "off") {
    trace_.reset();
    return Said::kGoOn;
  }
  std::string why;
  NoteFilter wanted;
  if (!wanted.parse(filter, &why)) return mistake(why);
  trace_ = std::move(wanted);
  return Said::kGoOn;
}

void Session::list_last(uint64_t count) const {
  last_.each_of_last(static_cast<uint32_t>(std::min<uint64_t>(count, kKept)),
                     [this](const NotedEvent& event) { tell_note(event.at, event.note); });
}

// ---- looking ---------------------------------------------------------------------------------------------------

void Session::list_channels() const {
  fmt::print(out_, "{:>7} {:>9} {:>9} {:15} {:>10} {:>10} {:>9} {:>7} {:>9} {:>9} {:>10}\n", "channel", "tpn",
             "peer tpn", "state", "next psn", "unacked", "in flight", "window", "expected", "lost", "rtt");
  const record::ReplayCore& core = replayer_.core();
  for (uint32_t i = 1; i <= core.channel_table_size(); ++i) {
    ChannelInfo c;
    if (!core.channel_info(i, &c)) continue;
    fmt::print(out_, "{:>7} {:>9} {:>9} {:15} {:>10} {:>10} {:>9} {:>7} {:>9} {:>9} {:>7} us\n", i, c.tpn, c.peer_tpn,
               channel_state_text(c.state), c.next_psn, c.oldest_unacked,
               (c.next_psn - c.oldest_unacked) & 0xffffff, c.window_packets, c.expected_psn, c.lost(),
               c.smoothed_rtt.us());
  }
}

void Session::list_queues() const {
  fmt::print(out_, "{:>8} {:10} {:>11} {:>11} {:>11} {:>11} {:>8}\n", "id", "state", "posted", "started", "retired",
             "completed", "waits for");
  const CoreState& s = replayer_.core().state();
  for (uint32_t id = 0; id < kIdSpace; ++id) {
    const IdSlot& slot = s.ids[id];
    if (slot.kind != ObjectKind::kJetty && slot.kind != ObjectKind::kJfs) continue;
    const SendQueue& q = s.queues[s.jettys[slot.record].queue];
    fmt::print(out_, "{:>8} {:10} {:>11} {:>11} {:>11} {:>11} {:>8}\n", id,
               queue_state_text(static_cast<uint32_t>(q.state)), q.posted, q.started_tail, q.started_head,
               q.indices->retired.load(), q.waits_for);
  }
}

void Session::list_completions() const {
  fmt::print(out_, "{:>6} {:>11} {:>11} {:>7} {:>6}\n", "jfc", "produced", "consumed", "depth", "armed");
  const CoreState& s = replayer_.core().state();
  for (uint32_t i = 1; i <= s.jfcs.high_water(); ++i) {
    const Jfc& j = s.jfcs[i];
    if (j.in_use)
      fmt::print(out_, "{:>6} {:>11} {:>11} {:>7} {:>6}\n", i, j.produced, j.indices->consumed.load(), j.depth,
                 j.indices->armed.load());
  }
}

void Session::list_counters() const {
  const Counters& counters = replayer_.core().counters();
  for (size_t i = 0; i < kCounterCount; ++i) {
    const auto counter = static_cast<Counter>(i);
    if (counters[counter] != 0) fmt::print(out_, "{:40} {}\n", counter_name(counter), counters[counter]);
  }
}

// ---- commands --------------------------------------------------------------------------------------------------

Session::Said Session::mistake(const std::string& what) const {
  fmt::print(out_, "{}\n", what);
  return Said::kMistake;
}

Session::Said Session::run(std::string_view line) {
  const std::string_view verb = take_part(&line, ' ');
  const auto number = [&](uint64_t otherwise) {
    uint64_t value = otherwise;
    if (!line.empty() && !read_number(line, &value)) return std::optional<uint64_t>();
    return std::optional<uint64_t>(value);
  };
  if (verb.empty()) return Said::kGoOn;
  if (verb == "quit") return Said::kQuit;
  if (verb == "help") {
    fmt::print(out_, "{}", kCommands);
  } else if (verb == "next" || verb == "to" || verb == "last") {
    const auto n = number(verb == "last" ? 20 : 1);
    if (!n) return mistake(fmt::format("{} takes a number", verb));
    if (verb == "last") {
      list_last(*n);
      return Said::kGoOn;
    }
    const uint64_t to = verb == "to" ? *n : replayer_.step().number + *n;
    if (to <= replayer_.step().number) return mistake("a replay only goes forwards; begin again to go back");
    return advance([this, to] { return replayer_.step().number >= to; });
  } else if (verb == "until") {
    return go_until(line);
  } else if (verb == "continue") {
    return advance([] { return false; });
  } else if (verb == "trace") {
    return set_trace(line);
  } else if (verb == "frames") {
    if (line != "on" && line != "off") return mistake("frames on, or frames off");
    frames_ = line == "on";
  } else if (verb == "where") {
    tell_step();
  } else if (verb == "channels") {
    list_channels();
  } else if (verb == "queues") {
    list_queues();
  } else if (verb == "completions") {
    list_completions();
  } else if (verb == "counters") {
    list_counters();
  } else {
    return mistake(fmt::format("there is no command {}; help tells of all", verb));
  }
  return Said::kGoOn;
}

}  // namespace ub::tools
