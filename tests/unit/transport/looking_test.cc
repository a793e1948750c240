// SPDX-License-Identifier: Apache-2.0
//
// Notes: what a ring keeps of them, their sentences, and when a Host hears of them.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lib/base/counters.h"
#include "lib/transport/core_common.h"
#include "lib/transport/looking/event_ring.h"
#include "lib/transport/looking/last_notes.h"
#include "lib/transport/looking/sentence.h"
#include "tests/unit/transport/looking.h"

namespace ub {
namespace {

std::string sentence(const Note& note) {
  char out[kSentenceRoom];
  return std::string(write_sentence(note, out));
}

// ---- sentences ---------------------------------------------------------------------------------------------------

TEST(Sentence, NamesItsObjectAndItsNumbers) {
  EXPECT_EQ(sentence({Stage::kPacketSentAgain, 3, 17, 5}), "channel 3 sends packet 17 of message 5 again");
}

TEST(Sentence, SaysStatesAndReasonsInWords) {
  EXPECT_EQ(sentence({Stage::kChannelState, 2, 3}), "channel 2 is now open");
  EXPECT_EQ(sentence({Stage::kRequestGivenUp, 4, 9, 11}), "request 9 of send queue 4 was given up: flushed");
  EXPECT_EQ(sentence({Stage::kQpState, 77, 6}), "queue pair 77 is now ERROR");
  EXPECT_EQ(sentence({Stage::kPacketDropped, 0, static_cast<uint32_t>(Counter::kRxDropNotUdp)}),
            "a packet was dropped: IP packet that is not UDP");
}

TEST(Sentence, AnUnknownStateIsANumber) { EXPECT_EQ(sentence({Stage::kChannelState, 2, 200}), "channel 2 is now 200"); }

TEST(Sentence, BeginsWithItsTime) {
  char out[kSentenceRoom];
  EXPECT_EQ(write_sentence(Instant{12'345}, {Stage::kJfcFull, 1}, out), "at 12.345 us JFC 1 is full");
  EXPECT_EQ(write_sentence(Instant{7'000'005}, {Stage::kJfcFull, 1}, out), "at 7000.005 us JFC 1 is full");
}

TEST(Sentence, IsCutWhereThereIsNoMoreRoom) {
  char out[8];
  EXPECT_EQ(write_sentence({Stage::kJfcFull, 1}, out), "JFC 1 is");
}

TEST(Sentence, EveryStageHasOneThatIsComplete) {
  for (uint32_t i = 0; i < kStageCount; ++i) {
    for (const uint32_t number : {0u, UINT32_MAX}) {
      const std::string s = sentence({static_cast<Stage>(i), number, number, number, number});
      EXPECT_LT(s.size(), kSentenceRoom - 40) << s;
      EXPECT_EQ(s.find_first_of("{}"), std::string::npos) << s;
    }
  }
}

TEST(Sentence, EveryDropFitsWithItsTime) {
  for (uint32_t i = 0; i < kCounterCount; ++i) {
    char out[kSentenceRoom];
    EXPECT_LT(write_sentence(Instant::never(), {Stage::kPacketDropped, 0, i}, out).size(), kSentenceRoom);
  }
}

// ---- the ring ----------------------------------------------------------------------------------------------------

template <uint32_t kRoom>
std::vector<uint32_t> last_objects(const EventRing<kRoom>& ring, uint32_t most) {
  std::vector<uint32_t> objects;
  ring.each_of_last(most, [&](const NotedEvent& e) { objects.push_back(e.note.object); });
  return objects;
}

TEST(EventRing, KeepsWhatWasAddedLast) {
  EventRing<4> ring;
  EXPECT_TRUE(last_objects(ring, 10).empty());
  for (uint32_t i = 1; i <= 6; ++i) ring.add({Instant{i}, 0, {Stage::kJfcFull, i}});
  EXPECT_EQ(last_objects(ring, 10), (std::vector<uint32_t>{3, 4, 5, 6}));
  EXPECT_EQ(ring.size(), 4u);
  EXPECT_EQ(ring.forgotten(), 2u);
}

TEST(EventRing, GivesNoMoreThanWasAskedFor) {
  EventRing<4> ring;
  for (uint32_t i = 1; i <= 3; ++i) ring.add({Instant{i}, 0, {Stage::kJfcFull, i}});
  EXPECT_EQ(last_objects(ring, 2), (std::vector<uint32_t>{2, 3}));
  EXPECT_TRUE(last_objects(ring, 0).empty());
}

// ---- the last notes ----------------------------------------------------------------------------------------------

std::vector<LastNote> all_of(const LastNotes& notes) {
  std::vector<LastNote> all;
  notes.each([&](const LastNote& n) { all.push_back(n); });
  return all;
}

TEST(LastNotes, AreTheNewestOnesOfThoseThatDiffer) {
  LastNotes notes{};
  EXPECT_TRUE(all_of(notes).empty());
  constexpr uint32_t kSaid = LastNotes::kRoom + 10;
  for (uint32_t i = 1; i <= kSaid; ++i) notes.add(Instant{i}, {Stage::kChannelState, i, 3});
  const std::vector<LastNote> all = all_of(notes);
  ASSERT_EQ(all.size(), LastNotes::kRoom - 1);
  EXPECT_EQ(all.front().note.object, kSaid - LastNotes::kRoom + 2);
  EXPECT_EQ(all.back().note.object, kSaid);
  EXPECT_EQ(all.back().times, 1u);
}

TEST(LastNotes, HaveTheTimeOfTheRealClock) {
  LastNotes notes{};
  notes.behind_ns = 1000;
  notes.add(Instant{7}, {Stage::kJfcFull, 1});
  notes.behind_ns = 5000;
  notes.add(Instant{8}, {Stage::kJfcFull, 1});
  const std::vector<LastNote> all = all_of(notes);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].first_ns, 1007u);
  EXPECT_EQ(all[0].last_ns, 5008u);
  EXPECT_EQ(all[0].times, 2u);
}

// A channel that loses packets all the time must not push out why another one died.
TEST(LastNotes, AFloodTakesOnePlace) {
  LastNotes notes{};
  notes.add(Instant{1}, {Stage::kChannelState, 7, 5});
  for (uint32_t i = 0; i < 1000; ++i) notes.add(Instant{2 + i}, {Stage::kPacketsLost, 3, 1, i});
  for (uint32_t i = 0; i < 1000; ++i) notes.add(Instant{2000 + i}, {Stage::kPacketDropped, 0, 9});
  std::vector<LastNote> all = all_of(notes);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[1].times, 1000u);
  EXPECT_EQ(all[1].note, (Note{Stage::kPacketsLost, 3, 1, 999})) << "the newest";
  EXPECT_EQ(all[2].times, 1000u);
  notes.add(Instant{5000}, {Stage::kPacketDropped, 0, 10});
  notes.add(Instant{5001}, {Stage::kPacketsLost, 3, 1, 1});
  notes.add(Instant{5002}, {Stage::kPacketsLost, 4, 1, 1});
  notes.add(Instant{5003}, {Stage::kChannelState, 4, 2});
  notes.add(Instant{5004}, {Stage::kChannelState, 4, 3});
  EXPECT_EQ(all_of(notes).size(), 7u) << "other reasons, channels and states are others";
}

TEST(LastNotes, OfSeveralFloodsAtATimeEachTakesOnePlace) {
  LastNotes notes{};
  notes.add(Instant{1}, {Stage::kChannelState, 7, 5});
  for (uint32_t i = 0; i < 1000; ++i) {
    notes.add(Instant{2 + i}, {Stage::kPacketsLost, 3, 1, i});
    notes.add(Instant{2 + i}, {Stage::kPacketDropped, 0, 9});
    notes.add(Instant{2 + i}, {Stage::kRecordPut, 2, 7});
    notes.add(Instant{2 + i}, {Stage::kRecordArrived, 2, 8});
  }
  EXPECT_EQ(all_of(notes).size(), 5u);
  EXPECT_EQ(all_of(notes)[2].times, 1000u);
  for (uint32_t state : {3u, 5u, 3u, 5u}) notes.add(Instant{5000}, {Stage::kChannelState, 7, state});
  EXPECT_EQ(all_of(notes).size(), 9u) << "states stay in their order";
  for (uint32_t i = 0; i < LastNotes::kSoon; ++i) notes.add(Instant{6000}, {Stage::kChannelState, i, 1});
  notes.add(Instant{7000}, {Stage::kPacketDropped, 0, 9});
  EXPECT_EQ(all_of(notes).back().times, 1u) << "the former ones are long ago";
}

// A channel that dies with a thousand requests is one event, and must not push out why it died.
TEST(LastNotes, WhatEachPacketMessageOrRequestMaySayTakesNoPlaceOfItsOwn) {
  for (uint32_t i = 0; i < kStageCount; ++i) {
    const std::string_view sentence = kStageSentences[i];
    const auto names_one = [=](const char* noun) { return sentence.find(noun) != sentence.npos; };
    const bool says_one_of_many = names_one("packet {") || names_one("message {") || names_one("request {");
    const bool takes_one_place = kStageKept[i] == Kept::kNo || kStageKept[i] == Kept::kNewest;
    EXPECT_TRUE(takes_one_place || !says_one_of_many) << kStageNames[i];
  }
}

TEST(LastNotes, AreKeptWhetherSomebodyLooksOrNot) {
  CoreCommon s;
  LastNotes notes{};
  s.now = Instant{77};
  s.note(Stage::kChannelState, 1, 3);  // nobody wants them
  s.last_notes = &notes;
  s.note(Stage::kChannelState, 2, 3);
  s.note(Stage::kPacketSent, 2);
  s.drop(Counter::kRxDropNotIp);
  const std::vector<LastNote> all = all_of(notes);
  ASSERT_EQ(all.size(), 2u) << "packets that go well are none of them";
  EXPECT_EQ(all[0].note, (Note{Stage::kChannelState, 2, 3}));
  EXPECT_EQ(all[0].first_ns, 77u);
  EXPECT_EQ(all[1].note.stage, Stage::kPacketDropped);
}

// ---- who hears of it ---------------------------------------------------------------------------------------------

struct Blind {};
struct LookingClosely : Looking {
  static constexpr bool kLooksClosely = true;
};

template <class Host>
void say_all(const CoreCommon& s) {
  s.note(Stage::kJfcFull, 1);
  note_of<Host>(s, Stage::kPacketSent, 2);
  note_step<Host>(s, Stage::kPacketBuilt, 3);
}

template <class Host>
std::vector<uint32_t> heard_by(Host& host, CoreCommon& s) {
  s.looker.begin(host);
  say_all<Host>(s);
  s.looker.end();
  say_all<Host>(s);  // nobody looks any more
  std::vector<uint32_t> objects;
  for (const Note& n : host.notes) objects.push_back(n.object);
  return objects;
}

TEST(Looker, HearsOfStepsOnlyIfItLooksClosely) {
  CoreCommon s;
  Looking host;
  LookingClosely close;
  EXPECT_EQ(heard_by(host, s), (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(heard_by(close, s), (std::vector<uint32_t>{1, 2, 3}));
  EXPECT_FALSE(Looks<Blind>);
  say_all<Blind>(s);
}

TEST(Looker, ADroppedPacketIsCountedAndNoted) {
  CoreCommon s;
  Looking host;
  s.looker.begin(host);
  s.drop(Counter::kRxDropNotIp);
  EXPECT_EQ(s.counters[Counter::kRxDropNotIp], 1u);
  EXPECT_EQ(host.notes, (std::vector<Note>{{Stage::kPacketDropped, 0, static_cast<uint32_t>(Counter::kRxDropNotIp)}}));
}

}  // namespace
}  // namespace ub
