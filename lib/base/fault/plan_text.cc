// SPDX-License-Identifier: Apache-2.0
#include "lib/base/fault/plan_text.h"

#include <algorithm>
#include <charconv>
#include <initializer_list>

namespace ub::fault {
namespace {

constexpr std::string_view kBlanks = " \t\r";

template <class T>
struct Named {
  std::string_view name;
  T value;
};

// As the API calls them, without URMA_CR_. Markers and what only urma_flush_* reports are no statuses to choose.
constexpr Named<CrStatus> kStatuses[] = {
    {"UNSUPPORTED_OPCODE_ERR", CrStatus::kUnsupportedOpcode},
    {"LOC_LEN_ERR", CrStatus::kLocLen},
    {"LOC_OPERATION_ERR", CrStatus::kLocOperation},
    {"LOC_ACCESS_ERR", CrStatus::kLocAccess},
    {"REM_RESP_LEN_ERR", CrStatus::kRemRespLen},
    {"REM_UNSUPPORTED_REQ_ERR", CrStatus::kRemUnsupported},
    {"REM_OPERATION_ERR", CrStatus::kRemOperation},
    {"REM_ACCESS_ABORT_ERR", CrStatus::kRemAccessAbort},
    {"ACK_TIMEOUT_ERR", CrStatus::kAckTimeout},
    {"RNR_RETRY_CNT_EXC_ERR", CrStatus::kRnrRetryExceeded},
    {"WR_FLUSH_ERR", CrStatus::kWrFlush},
    {"LOC_DATA_POISON", CrStatus::kLocDataPoison},
    {"REM_DATA_POISON", CrStatus::kRemDataPoison},
};

// As the API calls them, without URMA_OPC_.
constexpr Named<WrOp> kOps[] = {
    {"WRITE", WrOp::kWrite},      {"WRITE_IMM", WrOp::kWriteImm},
    {"READ", WrOp::kRead},        {"WRITE_NOTIFY", WrOp::kWriteNotify},
    {"CAS", WrOp::kCompareSwap},  {"SWAP", WrOp::kSwap},
    {"FADD", WrOp::kFetchAdd},    {"FSUB", WrOp::kFetchSub},
    {"FAND", WrOp::kFetchAnd},    {"FOR", WrOp::kFetchOr},
    {"FXOR", WrOp::kFetchXor},    {"SEND", WrOp::kSend},
    {"SEND_IMM", WrOp::kSendImm}, {"SEND_INVALIDATE", WrOp::kSendInvalidate},
    {"NOP", WrOp::kNop},
};

constexpr Named<Side> kSides[] = {{"send", Side::kSend}, {"receive", Side::kReceive}};
constexpr Named<PostError> kPostErrors[] = {{"ENOMEM", PostError::kFull}, {"EINVAL", PostError::kInvalid}};
constexpr Named<int64_t> kTimeUnits[] = {{"s", seconds(1).ns}, {"ms", milliseconds(1).ns}, {"us", microseconds(1).ns}};

std::string quoted(std::string_view text) { return std::string("\"").append(text).append("\""); }

// Does only a sender see that status?
bool is_of_senders(CrStatus status) {
  switch (status) {
    case CrStatus::kLocLen:
    case CrStatus::kLocOperation:
    case CrStatus::kLocAccess:
    case CrStatus::kWrFlush:
    case CrStatus::kLocDataPoison:
      return false;
    default:
      return true;
  }
}

// One clause: its words are taken one by one, and the first mistake is kept.
class Clause {
 public:
  explicit Clause(std::string_view text) {
    for (size_t at = text.find_first_not_of(kBlanks); at < text.size(); at = text.find_first_not_of(kBlanks, at)) {
      const size_t end = std::min(text.find_first_of(kBlanks, at), text.size());
      words_.push_back(text.substr(at, end - at));
      at = end;
    }
    if (!words_.empty()) text_ = {words_.front().data(), words_.back().data() + words_.back().size()};
  }

  bool empty() const { return words_.empty(); }
  std::string_view text() const { return text_; }
  const std::string& error() const { return error_; }
  void refuse(const std::string& why) {
    if (error_.empty()) error_ = why;
  }

  // The next word as it stands; empty: there is none.
  std::string_view take_word() {
    if (words_.empty()) return {};
    const std::string_view word = words_.front();
    words_.erase(words_.begin());
    return word;
  }

  // The value of KEY=VALUE. False: the clause has no such word.
  bool take(std::string_view key, std::string_view* value) {
    const auto is_it = [&](std::string_view word) {
      return word.starts_with(key) && word.substr(key.size(), 1) == "=";
    };
    const auto word = std::find_if(words_.begin(), words_.end(), is_it);
    if (word == words_.end()) return false;
    *value = word->substr(key.size() + 1);
    words_.erase(word);
    return true;
  }

  template <class Number>
  bool take_number(std::string_view key, Number least, Number most, Number* number) {
    std::string_view value;
    if (!take(key, &value)) return false;
    const char* end = value.data() + value.size();
    const auto [last, status] = std::from_chars(value.data(), end, *number);
    if (status != std::errc() || last != end || *number < least || *number > most) {
      refuse_value(key, value, "is no number of " + std::to_string(least) + " to " + std::to_string(most));
    }
    return true;
  }

  bool take_time(std::string_view key, Duration* time) {
    std::string_view value;
    if (!take(key, &value)) return false;
    const char* end = value.data() + value.size();
    const auto [last, status] = std::from_chars(value.data(), end, time->ns);
    const std::string_view unit(last, static_cast<size_t>(end - last));
    const auto* known = std::find_if(std::begin(kTimeUnits), std::end(kTimeUnits),
                                     [&](const auto& candidate) { return candidate.name == unit; });
    constexpr int64_t kLongest = 1'000'000;  // of any unit
    if (status != std::errc() || known == std::end(kTimeUnits) || time->ns <= 0 || time->ns > kLongest) {
      refuse_value(key, value, "is no time such as 500ms: 1 to 1000000 and one of s, ms, us");
    } else {
      time->ns *= known->value;
    }
    return true;
  }

  template <class T, size_t kCount, class Out>
  bool take_name(std::string_view key, const Named<T> (&names)[kCount], Out* out) {
    std::string_view value;
    if (!take(key, &value)) return false;
    const auto* found =
        std::find_if(std::begin(names), std::end(names), [&](const Named<T>& named) { return named.name == value; });
    if (found != std::end(names)) {
      *out = found->value;
      return true;
    }
    std::string all;
    for (const Named<T>& named : names) all.append(all.empty() ? "" : ", ").append(named.name);
    refuse_value(key, value, "is none of " + all);
    return true;
  }

  // Words that nobody took are mistakes.
  void end(const std::string& known_keys) {
    if (!words_.empty()) refuse(quoted(words_.front()) + " is not understood here; known are " + known_keys);
  }

 private:
  void refuse_value(std::string_view key, std::string_view value, const std::string& why) {
    refuse(std::string(key).append("=").append(value).append(" ").append(why));
  }

  std::string_view text_;  // from the first word to the last
  std::vector<std::string_view> words_;
  std::string error_;
};

constexpr const char* kChoiceKeys = "nth, every, chance, seed, count";

void read_choice(Clause& clause, Choice* choice) {
  constexpr uint32_t kMost = UINT32_MAX;
  const bool every = clause.take_number<uint32_t>("every", 1, kMost, &choice->n);
  const bool nth = clause.take_number<uint32_t>("nth", 1, kMost, &choice->n);
  const bool chance = clause.take_number<uint32_t>("chance", 1, 1000, &choice->n);
  if (every + nth + chance > 1) clause.refuse("only one of nth, every and chance can choose");
  choice->by = nth ? By::kNth : chance ? By::kChance : By::kEvery;
  if (nth) choice->at_most = 1;
  clause.take_number<uint32_t>("count", 1, kMost, &choice->at_most);
  if (clause.take_number<uint64_t>("seed", 0, UINT64_MAX, &choice->seed) && !chance) {
    clause.refuse("seed is of use only beside chance");
  }
}

void read_filter(Clause& clause, Filter* filter) {
  clause.take_name("side", kSides, &filter->side);
  clause.take_name("op", kOps, &filter->op);
  clause.take_number<uint32_t>("queue", 1, UINT32_MAX, &filter->queue);
}

void read_completion(Clause& clause, ProgramPlan* plan) {
  CompletionRule rule;
  read_choice(clause, &rule.choice);
  read_filter(clause, &rule.filter);
  clause.take_number<uint32_t>("jfc", 1, UINT32_MAX, &rule.filter.jfc);
  if (!clause.take_name("status", kStatuses, &rule.status)) clause.refuse("status= is missing");
  if (is_of_senders(rule.status)) {
    if (rule.filter.side == Side::kReceive) clause.refuse("no receive ends with that status");
    rule.filter.side = Side::kSend;
  }
  clause.end(std::string("status, side, op, queue, jfc, ") + kChoiceKeys);
  plan->completions.push_back(rule);
}

void read_post(Clause& clause, ProgramPlan* plan) {
  PostRule rule;
  read_choice(clause, &rule.choice);
  read_filter(clause, &rule.filter);
  clause.take_name("error", kPostErrors, &rule.error);
  if (rule.filter.op && rule.filter.side == Side::kReceive) clause.refuse("a receive that is posted has no op");
  clause.end(std::string("error, side, op, queue, ") + kChoiceKeys);
  plan->posts.push_back(rule);
}

void read_rnr(Clause& clause, std::optional<RnrRule>* rule) {
  if (*rule) clause.refuse("there is an rnr already");
  rule->emplace();
  read_choice(clause, &(*rule)->choice);
  clause.take_number<uint32_t>("queue", 1, UINT32_MAX, &(*rule)->jfr);
  clause.end(std::string("queue, ") + kChoiceKeys);
}

void read_window(Clause& clause, std::optional<Window>* window) {
  if (*window) clause.refuse("there is one of that kind already");
  Window& w = window->emplace();
  clause.take_time("after", &w.after);
  clause.take_time("for", &w.lasts);
  if (clause.take_time("every", &w.every) && (w.lasts.ns == 0 || w.every <= w.lasts)) {
    clause.refuse("every= must be longer than for=, which must be there");
  }
  clause.end("after, for, every");
}

void read_clause(Clause& clause, Plan* plan) {
  const std::string_view kind = clause.take_word();
  if (kind == "completion") {
    read_completion(clause, &plan->program);
  } else if (kind == "post") {
    read_post(clause, &plan->program);
  } else if (kind == "rnr") {
    read_rnr(clause, &plan->nic.rnr);
  } else if (kind == "stop") {
    read_window(clause, &plan->nic.stop);
  } else if (kind == "port") {
    if (clause.take_word() != "down") clause.refuse("\"down\" is missing behind \"port\"");
    read_window(clause, &plan->nic.port_down);
  } else {
    clause.refuse(quoted(kind) + " is none of completion, post, rnr, port down, stop");
  }
}

}  // namespace

ParsedPlan parse_plan(std::string_view text) {
  Plan plan;
  size_t number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of(";\n"), text.size());
    Clause clause(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (clause.empty()) continue;
    ++number;
    read_clause(clause, &plan);
    if (!clause.error().empty()) {
      return {{}, "fault " + std::to_string(number) + ", " + quoted(clause.text()) + ": " + clause.error()};
    }
  }
  return {std::move(plan), {}};
}

}  // namespace ub::fault
