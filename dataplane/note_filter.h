// SPDX-License-Identifier: Apache-2.0
//
// Which notes somebody wants to hear of, in the words of their sentences (stages.def): "channel=3 packet=100..200"
// takes those whose sentence names channel 3 and one of these packets, "stage=kPacket*" those of some stages. All terms
// have to hold; a term with commas holds if one of its parts does: "stage=kPacketsLost,kTimerRanOut". No text: all
// notes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/words.h"
#include "lib/transport/looking/note.h"

namespace ub {

class NoteFilter {
 public:
  // False and `*why`, a sentence with the word that is wrong and those that there are.
  bool parse(std::string_view text, std::string* why);
  bool takes(const Note& note) const;

 private:
  struct Number {
    std::string noun;
    ValueRanges ranges;
  };
  bool parse_term(std::string_view term, std::string* why);
  bool parse_stages(std::string_view globs, std::string* why);

  std::vector<Number> numbers_;
  std::vector<bool> stages_;  // by Stage; empty: all
};

// The number that a note of this stage has behind that noun; null: it has none.
uint32_t Note::* number_behind(std::string_view noun, Stage);

// The nouns that numbers of notes have: "channel", "JFC", "packet" and so on, sorted.
std::vector<std::string> note_nouns();

}  // namespace ub
