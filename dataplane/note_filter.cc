// SPDX-License-Identifier: Apache-2.0
#include "dataplane/note_filter.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <set>

#include "dataplane/words.h"

namespace ub {
namespace {

// ---- sentences -------------------------------------------------------------------------------------------------

struct NamedNumber {
  std::string_view noun;
  uint32_t Note::* number;
};
using NamedNumbers = std::vector<NamedNumber>;

uint32_t Note::* member_of(std::string_view field) {
  return field == "object" ? &Note::object : field == "a" ? &Note::a : field == "b" ? &Note::b : &Note::c;
}

// Other words that stand in front of a number.
constexpr std::string_view kNoNouns[] = {"and", "are", "for", "from", "send", "take", "the", "with"};

bool is_noun(std::string_view word) {
  const bool letters = std::all_of(word.begin(), word.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  });
  return letters && word.size() > 2 && std::find(std::begin(kNoNouns), std::end(kNoNouns), word) == std::end(kNoNouns);
}

// "channel {object} sends packet {a}": each number that stands as such has the word in front of it as its noun. Of
// "packets {a} to {b}" the first one does.
NamedNumbers numbers_of(std::string_view sentence) {
  NamedNumbers numbers;
  for (size_t open = sentence.find('{'); open != std::string_view::npos; open = sentence.find('{', open + 1)) {
    const std::string_view field = sentence.substr(open + 1, sentence.find('}', open) - open - 1);
    if (open < 2 || field.find(':') != std::string_view::npos) continue;
    const std::string_view before = sentence.substr(0, open - 1);
    const size_t space = before.rfind(' ');
    std::string_view noun = before.substr(space == std::string_view::npos ? 0 : space + 1);
    if (noun.ends_with('s')) noun.remove_suffix(1);
    if (is_noun(noun)) numbers.push_back({noun, member_of(field)});
  }
  return numbers;
}

const std::array<NamedNumbers, kStageCount>& numbers_of_stages() {
  static const std::array<NamedNumbers, kStageCount> all = [] {
    std::array<NamedNumbers, kStageCount> made;
    std::transform(std::begin(kStageSentences), std::end(kStageSentences), made.begin(), numbers_of);
    return made;
  }();
  return all;
}

// ---- text ------------------------------------------------------------------------------------------------------

std::string list_of(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

}  // namespace

uint32_t Note::* number_behind(std::string_view noun, Stage stage) {
  for (const NamedNumber& n : numbers_of_stages()[static_cast<uint32_t>(stage)])
    if (n.noun == noun) return n.number;
  return nullptr;
}

std::vector<std::string> note_nouns() {
  std::set<std::string> nouns;
  for (const NamedNumbers& numbers : numbers_of_stages())
    for (const NamedNumber& n : numbers) nouns.emplace(n.noun);
  return {nouns.begin(), nouns.end()};
}

bool NoteFilter::parse(std::string_view text, std::string* why) {
  numbers_.clear();
  stages_.clear();
  return each_part(text, ' ', [&](std::string_view term) { return parse_term(term, why); });
}

bool NoteFilter::parse_term(std::string_view term, std::string* why) {
  const size_t equals = std::min(term.find('='), term.size());
  const std::string noun(term.substr(0, equals));
  const std::string_view value = term.substr(std::min(equals + 1, term.size()));
  if (noun == "stage") return parse_stages(value, why);
  const std::vector<std::string> nouns = note_nouns();
  if (equals == term.size() || !std::binary_search(nouns.begin(), nouns.end(), noun)) {
    *why = "filter \"" + std::string(term) + "\": a term is stage=NAME or NOUN=NUMBER, with one of these nouns: " +
           list_of(nouns);
    return false;
  }
  if (read_ranges(value, &numbers_.emplace_back(Number{noun, {}}).ranges)) return true;
  *why = "filter \"" + std::string(term) + "\": behind = stands a number, or a range such as 100..200";
  return false;
}

bool NoteFilter::parse_stages(std::string_view globs, std::string* why) {
  if (stages_.empty()) stages_.resize(kStageCount);
  bool any = false;
  const bool known = each_part(globs, ',', [&](std::string_view glob) {
    bool found = false;
    for (uint32_t i = 0; i < kStageCount; ++i) {
      if (!matches(glob, kStageNames[i])) continue;
      stages_[i] = found = true;
    }
    any |= found;
    return found;
  });
  if (known && any) return true;
  *why = "filter \"stage=" + std::string(globs) + "\": no stage has that name; they are those of stages.def, such as "
         "kPacketSentAgain or kPacket*";
  return false;
}

bool NoteFilter::takes(const Note& note) const {
  const auto stage = static_cast<uint32_t>(note.stage);
  if (!stages_.empty() && !stages_[stage]) return false;
  const NamedNumbers& named = numbers_of_stages()[stage];
  return std::all_of(numbers_.begin(), numbers_.end(), [&](const Number& wanted) {
    return std::any_of(named.begin(), named.end(), [&](const NamedNumber& n) {
      return n.noun == wanted.noun && is_in(wanted.ranges, note.*n.number);
    });
  });
}

}  // namespace ub
