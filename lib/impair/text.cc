// SPDX-License-Identifier: Apache-2.0
#include "lib/impair/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>
#include <utility>

#include "lib/impair/quoted.h"

namespace ub::impair {
namespace {

constexpr std::string_view kBlanks = " \t\r";

struct Unit {
  std::string_view name;
  double value;
};

constexpr Unit kTimes[] = {{"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}};
constexpr Unit kRates[] = {{"T", 1e12}, {"G", 1e9}, {"M", 1e6}, {"k", 1e3}};
constexpr Unit kBytes[] = {{"MiB", 1 << 20}, {"KiB", 1 << 10}, {"MB", 1e6}, {"kB", 1e3}, {"B", 1}};
constexpr double kMostNs = 1e15;        // of a time: 11 days
constexpr double kMostRate = 1e14;      // bits per second
constexpr double kMostBytes = 1 << 30;  // of a queue
constexpr uint32_t kMostCount = 1'000'000'000;
constexpr uint32_t kMostReorder = 100'000;

struct NamedKind {
  std::string_view name;
  Kind kind;
};
constexpr NamedKind kKinds[] = {{"data", Kind::kData}, {"ack", Kind::kAck},   {"setup", Kind::kSetup},
                                {"ctp", Kind::kCtp},   {"roce", Kind::kRoce}, {"other", Kind::kOther}};

// ---- values, read ----

// The number at the front of the text, which becomes what follows it.
std::optional<double> take_number(std::string_view* text) {
  double number = 0;
  const auto [end, status] =
      std::from_chars(text->data(), text->data() + text->size(), number, std::chars_format::fixed);
  if (status != std::errc() || !std::isfinite(number) || number < 0) return {};
  text->remove_prefix(static_cast<size_t>(end - text->data()));
  return number;
}

// A number and one of the units. It may lack the unit if it is 0.
std::optional<double> number_with_unit(std::string_view text, std::span<const Unit> units, double most) {
  const std::optional<double> number = take_number(&text);
  if (!number) return {};
  if (*number == 0 && text.empty()) return 0;
  for (const Unit& unit : units) {
    if (unit.name == text && *number * unit.value <= most) return *number * unit.value;
  }
  return {};
}

bool read_time(std::string_view text, Duration* time) {
  const std::optional<double> ns = number_with_unit(text, kTimes, kMostNs);
  if (ns) time->ns = std::llround(*ns);
  return ns.has_value();
}

bool read_bytes(std::string_view text, uint64_t* bytes) {
  const std::optional<double> number = number_with_unit(text, kBytes, kMostBytes);
  if (number) *bytes = static_cast<uint64_t>(std::llround(*number));
  return number.has_value();
}

bool read_share(std::string_view text, double* share) {
  const std::optional<double> percent = number_with_unit(text, std::array{Unit{"%", 1}}, 100);
  if (percent) *share = *percent / 100;
  return percent.has_value();
}

bool read_count(std::string_view text, uint32_t most, uint32_t* count) {
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), *count);
  return status == std::errc() && end == text.data() + text.size() && *count <= most;
}

// What needs a value goes with it: a rate has a queue, losses have bursts, late frames are so late and so many.
bool read_rate(std::string_view text, Spec& spec) {
  const std::optional<double> rate = number_with_unit(text, kRates, kMostRate);
  if (!rate) return false;
  spec.rate = static_cast<uint64_t>(std::llround(*rate));
  if (spec.rate != 0) return true;
  if (*rate != 0) return false;  // less than a bit per second is not "no limit"
  spec.queue_frames = 0;
  spec.queue_bytes = 0;
  spec.mark = {};
  spec.caqm = {};
  return true;
}

bool read_loss(std::string_view text, Spec& spec) {
  if (!read_share(text, &spec.loss)) return false;
  if (spec.loss == 0) spec.burst = 0;
  return true;
}

bool read_reorder(std::string_view text, Spec& spec) {
  if (!read_count(text, kMostReorder, &spec.reorder)) return false;
  if (spec.reorder != 0) return true;
  spec.late = 0;
  spec.wait = {};
  return true;
}

bool read_burst(std::string_view text, Spec& spec) {
  const std::optional<double> frames = take_number(&text);
  if (!frames || !text.empty() || *frames > kMostCount || (*frames < 1 && *frames != 0)) return false;
  spec.burst = *frames;
  return true;
}

bool read_kinds(std::string_view text, Spec& spec) {
  if (text == "all") {
    spec.kinds = kAllKinds;
    return true;
  }
  Kinds kinds = 0;
  for (;;) {
    const size_t comma = text.find(',');
    const std::string_view name = text.substr(0, comma);
    const auto* known =
        std::find_if(std::begin(kKinds), std::end(kKinds), [&](const auto& k) { return k.name == name; });
    if (known == std::end(kKinds)) return false;
    kinds |= kinds_of(known->kind);
    if (comma == text.npos) break;
    text.remove_prefix(comma + 1);
  }
  spec.kinds = kinds;
  return true;
}

bool read_queue(std::string_view text, Spec& spec) {
  uint32_t frames = 0;
  uint64_t bytes = 0;
  const bool is_count = read_count(text, kMostCount, &frames);
  if (!is_count && !read_bytes(text, &bytes)) return false;
  spec.queue_frames = is_count ? frames : 0;
  spec.queue_bytes = bytes;
  return true;
}

bool read_mark(std::string_view text, Spec& spec) {
  spec.mark = {};
  if (text == "0") return true;
  const size_t first = std::min(text.find('/'), text.size());
  const size_t second = std::min(text.find('/', first + 1), text.size());
  if (second == text.size()) return false;
  return read_bytes(text.substr(0, first), &spec.mark.none_below) &&
         read_bytes(text.substr(first + 1, second - first - 1), &spec.mark.all_from) && spec.mark.all_from != 0 &&
         spec.mark.none_below <= spec.mark.all_from && read_share(text.substr(second + 1), &spec.mark.most);
}

bool read_caqm(std::string_view text, Spec& spec) {
  spec.caqm = {};
  if (text == "0") return true;
  const size_t slash = std::min(text.find('/'), text.size());
  if (!read_bytes(text.substr(0, slash), &spec.caqm.target_bytes) || spec.caqm.target_bytes == 0) return false;
  return slash == text.size() ||
         (read_time(text.substr(slash + 1), &spec.caqm.round_trip) && spec.caqm.round_trip.ns != 0);
}

// ---- values, written ----

std::string number_text(double number) {
  char text[32];
  const auto [end, status] =
      std::to_chars(text, text + sizeof text, number, std::chars_format::general, 12);  // 7 %, not 7.000000000000001 %
  const std::string_view shown(text, static_cast<size_t>(end - text));
  if (shown.find('e') == shown.npos) return std::string(shown);
  return {text, std::to_chars(text, text + sizeof text, number, std::chars_format::fixed).ptr};
}

// In the largest unit of which it is a whole number, or in the smallest.
std::string with_unit(double value, std::span<const Unit> units) {
  for (const Unit& unit : units) {
    if (value >= unit.value && std::fmod(value, unit.value) == 0)
      return number_text(value / unit.value).append(unit.name);
  }
  return number_text(value / units.back().value).append(units.back().name);
}

std::string time_text(Duration time) { return with_unit(static_cast<double>(time.ns), kTimes); }
std::string share_text(double share) { return number_text(share * 100) + "%"; }
std::string bytes_text(uint64_t bytes) { return with_unit(static_cast<double>(bytes), kBytes); }

std::string kinds_text(Kinds kinds) {
  if (kinds == kAllKinds) return "all";
  std::string text;
  for (const NamedKind& k : kKinds) {
    if (has_kind(kinds, k.kind)) text.append(text.empty() ? "" : ",").append(k.name);
  }
  return text;
}

std::string queue_text(const Spec& s) {
  return s.queue_bytes != 0 ? bytes_text(s.queue_bytes) : std::to_string(s.queue_frames);
}

std::string mark_text(const Marking& m) {
  if (m.all_from == 0) return "0";
  return bytes_text(m.none_below) + "/" + bytes_text(m.all_from) + "/" + share_text(m.most);
}

std::string caqm_text(const CaqmTarget& c) {
  return c.target_bytes == 0 ? "0" : bytes_text(c.target_bytes) + "/" + time_text(c.round_trip);
}

// ---- words ----

constexpr const char* kShare = "a share such as 1%, of 0% to 100%";
constexpr const char* kTime = "a time such as 5us (ns, us, ms or s), at most 1000000s";

struct Word {
  std::string_view key;
  const char* allowed;
  bool (*read)(std::string_view value, Spec&);
  std::string (*write)(const Spec&);
};

constexpr Word kWords[] = {
    {"rate", "bits per second such as 100G or 1.5M (k, M, G or T), or 0 for no limit",  //
     read_rate, [](const Spec& s) { return with_unit(static_cast<double>(s.rate), kRates); }},
    {"delay", kTime, [](std::string_view v, Spec& s) { return read_time(v, &s.delay); },
     [](const Spec& s) { return time_text(s.delay); }},
    {"jitter", kTime, [](std::string_view v, Spec& s) { return read_time(v, &s.jitter); },
     [](const Spec& s) { return time_text(s.jitter); }},
    {"queue", "a number of frames such as 1000, or bytes such as 64KiB (B, kB, KiB, MB or MiB), or 0 for no limit",
     read_queue, queue_text},
    {"mark", "two numbers of bytes and a share, such as 100kB/400kB/20%, the first not above the second; or 0",
     read_mark, [](const Spec& s) { return mark_text(s.mark); }},
    {"caqm", "a number of bytes and a round trip, such as 40KiB/10us, or bytes alone for 10us; or 0",  //
     read_caqm, [](const Spec& s) { return caqm_text(s.caqm); }},
    {"kind", "all, or some of data, ack, setup, ctp, roce, other, with commas between them",  //
     read_kinds, [](const Spec& s) { return kinds_text(s.kinds); }},
    {"loss", kShare, read_loss, [](const Spec& s) { return share_text(s.loss); }},
    {"burst", "a mean number of frames of at least 1, or 0 for independent losses",  //
     read_burst, [](const Spec& s) { return number_text(s.burst); }},
    {"every", "a number of frames such as 100, or 0",
     [](std::string_view v, Spec& s) { return read_count(v, kMostCount, &s.every); },
     [](const Spec& s) { return std::to_string(s.every); }},
    {"duplicate", kShare, [](std::string_view v, Spec& s) { return read_share(v, &s.duplicate); },
     [](const Spec& s) { return share_text(s.duplicate); }},
    {"corrupt", kShare, [](std::string_view v, Spec& s) { return read_share(v, &s.corrupt); },
     [](const Spec& s) { return share_text(s.corrupt); }},
    {"reorder", "a number of frames of 0 to 100000", read_reorder,  //
     [](const Spec& s) { return std::to_string(s.reorder); }},
    {"late", kShare, [](std::string_view v, Spec& s) { return read_share(v, &s.late); },
     [](const Spec& s) { return share_text(s.late); }},
    {"wait", kTime, [](std::string_view v, Spec& s) { return read_time(v, &s.wait); },
     [](const Spec& s) { return time_text(s.wait); }},
};

std::string known_words() {
  std::string all = "known are ";
  for (const Word& word : kWords) all.append(word.key).append("=, ");
  return all + "down, up, clear, and \"at TIME\" at the front";
}

// Changes the spec by a word. Not empty: what is wrong with it.
std::string apply(std::string_view text, Spec& spec) {
  if (text == "down" || text == "up") {
    spec.down = text == "down";
    return {};
  }
  if (text == "clear") {
    spec = {};
    return {};
  }
  if (text == "at") return "\"at\" begins a part of its own; put \";\" in front of it, as in \"loss=1%; at 3s down\"";
  const size_t equals = text.find('=');
  const std::string_view key = text.substr(0, equals);
  const auto* word = std::find_if(std::begin(kWords), std::end(kWords), [&](const Word& w) { return w.key == key; });
  if (equals == text.npos || word == std::end(kWords)) return quoted(text) + " is not understood; " + known_words();
  if (word->read(text.substr(equals + 1), spec)) return {};
  return quoted(text) + ": " + std::string(key) + "= takes " + word->allowed;
}

// Not empty: why the values do not fit each other.
std::string contradiction(const Spec& s) {
  if (s.rate == 0 && (s.queue_frames != 0 || s.queue_bytes != 0)) return "queue= needs rate=: without it nothing waits";
  if (s.rate == 0 && s.mark.all_from != 0) return "mark= needs rate=: without it nothing waits";
  if (s.rate == 0 && s.caqm.target_bytes != 0) return "caqm= needs rate=: without it nothing waits";
  if (s.mark.all_from != 0 && s.caqm.target_bytes != 0)
    return "mark= and caqm= are two rules for the same marks: take one of them back, as in \"mark=0 caqm=40KiB\"";
  if (s.burst != 0 && s.loss == 0) return "burst= needs loss=, the share that is lost";
  if (s.burst != 0 && s.loss > s.burst / (s.burst + 1)) {
    return "with burst=" + number_text(s.burst) + " loss= can be at most " + share_text(s.burst / (s.burst + 1));
  }
  if (s.reorder == 0 && (s.late != 0 || s.wait.ns != 0)) return "late= and wait= need reorder=, the number of frames";
  return {};
}

// The next word, cut off; empty: there is none.
std::string_view take_word(std::string_view* text) {
  text->remove_prefix(std::min(text->find_first_not_of(kBlanks), text->size()));
  const std::string_view word = text->substr(0, text->find_first_of(kBlanks));
  text->remove_prefix(word.size());
  return word;
}

// The words of a clause behind its time.
std::string apply_all(std::string_view words, Spec& spec) {
  for (std::string_view word = take_word(&words); !word.empty(); word = take_word(&words)) {
    if (std::string error = apply(word, spec); !error.empty()) return error;
  }
  return contradiction(spec);
}

// A clause that begins with "at".
std::string read_change(std::string_view words, const Spec& before, Duration not_before, Script* script) {
  Script::Change change{{}, before};
  const std::string_view time = take_word(&words);
  if (!read_time(time, &change.at)) return quoted(time) + ": at takes " + kTime;
  if (change.at < not_before) return quoted(time) + ": the times of a text must not go back";
  std::string error = apply_all(words, change.spec);
  script->changes.push_back(change);
  return error;
}

std::string read_clause(std::string_view clause, bool is_first, Script* script) {
  std::string_view words = clause;
  if (take_word(&words) != "at") {
    if (!is_first) return quoted(clause) + ": only the first part may do without \"at TIME\"";
    return apply_all(clause, script->first);
  }
  if (script->changes.empty()) return read_change(words, script->first, {}, script);
  const Script::Change last = script->changes.back();
  return read_change(words, last.spec, last.at, script);
}

}  // namespace

Parsed parse(std::string_view text, const Spec& base) {
  Script script(base);
  bool is_first = true;
  while (!text.empty()) {
    const std::string_view clause = text.substr(0, text.find_first_of(";\n"));
    text.remove_prefix(std::min(clause.size() + 1, text.size()));
    if (clause.find_first_not_of(kBlanks) == clause.npos) continue;
    if (std::string error = read_clause(clause, is_first, &script); !error.empty()) return {{}, error};
    is_first = false;
  }
  return {std::move(script), {}};
}

std::string to_text(const Spec& spec) {
  const Spec plain;
  std::string text;
  for (const Word& word : kWords) {
    const std::string value = word.write(spec);
    if (value != word.write(plain)) text.append(text.empty() ? "" : " ").append(word.key).append("=").append(value);
  }
  if (spec.down) text.append(text.empty() ? "down" : " down");
  return text.empty() ? "clear" : text;
}

// A change names its whole state, so it does not matter what was before.
std::string to_text(const Script& script) {
  std::string text = to_text(script.first);
  for (const Script::Change& change : script.changes) {
    text += "; at " + time_text(change.at) + (change.spec == Spec{} ? " " : " clear ") + to_text(change.spec);
  }
  return text;
}

}  // namespace ub::impair
