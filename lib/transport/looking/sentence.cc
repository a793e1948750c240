// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/looking/sentence.h"

#include <algorithm>
#include <charconv>

#include "lib/base/counters.h"
#include "lib/transport/roce/qp_states.h"
#include "lib/transport/roce/wire/syndrome.h"

namespace ub {
namespace {

// ---- words, by the numbers of the enum that they are of -------------------------------------------------------------

struct Vocabulary {
  std::string_view kind;
  std::span<const std::string_view> words;
};

constexpr std::string_view kResponses[] = {"OK", "receiver not ready", "page fault", "error"};  // wire::kRsp*
constexpr std::string_view kStatuses[] = {"success",
                                          "unsupported opcode",
                                          "local length error",
                                          "local operation error",
                                          "local access error",
                                          "remote response length error",
                                          "unsupported by the target",
                                          "remote operation error",
                                          "remote access abort",
                                          "no acknowledgement in time",
                                          "the target was not ready too often",
                                          "flushed",
                                          "suspended",
                                          "flush done",
                                          "never begun"};  // CrStatus
constexpr std::string_view kQueueStates[] = {"RESET", "READY", "SUSPENDED", "ERROR"};
constexpr std::string_view kChannelStates[] = {"free", "asking its peer", "half open",
                                               "open", "closing",         "dead"};  // tp::ChannelState
constexpr std::string_view kRecords[] = {"0",    "REQ",  "REP",   "CONF",    "REJ",  "CLOSE", "CLOSED",
                                         "PING", "PONG", "RESET", "SC_FREE", "FIND", "FOUND"};  // wire::RecordType
constexpr std::string_view kReasons[] = {"none",           "no resources",    "a parameter", "both ends asked",
                                         "unknown entity", "unknown channel", "restarted",   "an administrator"};
constexpr std::string_view kConnectionStates[] = {"closed",
                                                  "asking its peer",
                                                  "accepted, and waits for its application",
                                                  "asked for, and waits for its application",
                                                  "half open",
                                                  "established",
                                                  "ending",
                                                  "at rest"};  // roce::CmState
constexpr std::string_view kWaits[] = {"for a READ or atomic before its fence",
                                       "for those that it is ordered behind",
                                       "for a receive at its target",
                                       "for answers to those under way",
                                       "for the rate of its owner",
                                       "until its lane is free"};  // RequestWaits

constexpr Vocabulary kVocabularies[] = {
    {"response", kResponses},
    {"status", kStatuses},
    {"queue state", kQueueStates},
    {"record", kRecords},
    {"channel state", kChannelStates},
    {"reason", kReasons},
    {"wait", kWaits},
    {"connection state", kConnectionStates},
};

std::string_view word_of(std::span<const std::string_view> words, uint32_t number) {
  return number < words.size() ? words[number] : "unknown";
}

// ---- text -----------------------------------------------------------------------------------------------------------

class Text {
 public:
  explicit Text(std::span<char> out) : out_(out) {}

  void add(std::string_view s) {
    s = s.substr(0, out_.size() - used_);
    std::copy(s.begin(), s.end(), out_.data() + used_);
    used_ += s.size();
  }
  void add_number(uint64_t n, int base = 10) {
    char digits[20];
    const char* end = std::to_chars(digits, digits + sizeof digits, n, base).ptr;
    add({digits, static_cast<size_t>(end - digits)});
  }
  std::string_view view() const { return {out_.data(), used_}; }

 private:
  std::span<char> out_;
  size_t used_ = 0;
};

std::string_view syndrome_words(uint32_t code) {
  const roce::Syndrome syndrome{static_cast<uint8_t>(code)};
  if (syndrome.kind() == roce::AckKind::kAck) return "an acknowledgement";
  if (syndrome.kind() == roce::AckKind::kRnr) return "that it has no receive yet";
  return syndrome.nak_code() == roce::NakCode::kPsnSequence ? "that packets are missing" : "a refusal";
}

void add_word(Text& text, std::string_view kind, uint32_t number) {
  if (kind.empty()) return text.add_number(number);
  if (kind == "hex") return text.add_number(number, 16);
  if (kind == "counter" && number < kCounterCount) return text.add(kCounterHelp[number]);
  if (kind == "syndrome") return text.add(syndrome_words(number));
  if (kind == "queue pair state" && number < roce::kQpStates) {
    return text.add(roce::qp_state_name(static_cast<roce::QpState>(number)));
  }
  for (const Vocabulary& v : kVocabularies) {
    if (v.kind == kind && number < v.words.size()) return text.add(v.words[number]);
  }
  text.add_number(number);  // no word is known
}

uint32_t argument(const Note& note, std::string_view name) {
  return name == "object" ? note.object : name == "a" ? note.a : name == "b" ? note.b : note.c;
}

void add_sentence(Text& text, const Note& note) {
  std::string_view rest = kStageSentences[static_cast<uint32_t>(note.stage)];
  for (;;) {
    const size_t open = rest.find('{');
    text.add(rest.substr(0, open));
    if (open == std::string_view::npos) return;
    const size_t close = rest.find('}', open);
    const std::string_view field = rest.substr(open + 1, close - open - 1);
    const size_t colon = std::min(field.find(':'), field.size());
    add_word(text, field.substr(std::min(colon + 1, field.size())), argument(note, field.substr(0, colon)));
    rest.remove_prefix(close + 1);
  }
}

}  // namespace

std::string_view write_sentence(const Note& note, std::span<char> out) {
  Text text(out);
  add_sentence(text, note);
  return text.view();
}

std::string_view write_sentence(Instant at, const Note& note, std::span<char> out) {
  Text text(out);
  const uint64_t thousandths = at.ns % 1000;
  text.add("at ");
  text.add_number(at.ns / 1000);
  text.add(thousandths < 10 ? ".00" : thousandths < 100 ? ".0" : ".");
  text.add_number(thousandths);
  text.add(" us ");
  add_sentence(text, note);
  return text.view();
}

std::string_view channel_state_text(uint32_t state) { return word_of(kChannelStates, state); }
std::string_view queue_state_text(uint32_t state) { return word_of(kQueueStates, state); }

}  // namespace ub
