// SPDX-License-Identifier: Apache-2.0
//
// Filters of notes: which words there are, what they take, and what is said of others.
#include "dataplane/note_filter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace ub {
namespace {

NoteFilter filter(const char* text) {
  NoteFilter f;
  std::string why;
  EXPECT_TRUE(f.parse(text, &why)) << why;
  return f;
}
std::string refused(const char* text) {
  NoteFilter f;
  std::string why;
  EXPECT_FALSE(f.parse(text, &why)) << text;
  return why;
}

constexpr Note kSent{Stage::kPacketSent, 3, 100, 7};  // channel 3 sends packet 100 of message 7

TEST(NoteFilter, NoTextTakesAll) {
  for (uint32_t i = 0; i < kStageCount; ++i) EXPECT_TRUE(filter("").takes({static_cast<Stage>(i), 1}));
}

TEST(NoteFilter, AnotherTextTakesThePlaceOfTheOneBefore) {
  NoteFilter f = filter("channel=4 stage=kPosted");
  std::string why;
  ASSERT_TRUE(f.parse("packet=100", &why)) << why;
  EXPECT_TRUE(f.takes(kSent));
}

TEST(NoteFilter, NumbersHaveTheNounInFrontOfThem) {
  EXPECT_TRUE(filter("channel=3").takes(kSent));
  EXPECT_FALSE(filter("channel=4").takes(kSent));
  EXPECT_TRUE(filter("packet=100").takes(kSent));
  EXPECT_TRUE(filter("message=7").takes(kSent));
  EXPECT_FALSE(filter("JFC=3").takes(kSent)) << "it speaks of none";
  EXPECT_TRUE(filter("queue=4").takes({Stage::kRequestBegan, 4, 9, 100, 3}));
  EXPECT_TRUE(filter("request=9").takes({Stage::kRequestBegan, 4, 9, 100, 3}));
  EXPECT_TRUE(filter("channel=3 packet=100").takes({Stage::kRequestBegan, 4, 9, 100, 3}));
  EXPECT_TRUE(filter("packet=20").takes({Stage::kPacketsAcknowledged, 3, 20, 25})) << "packets {a} to {b}";
  EXPECT_TRUE(filter("pair=77").takes({Stage::kQpState, 77, 6}));
  EXPECT_TRUE(filter("JFC=1").takes({Stage::kJfcFull, 1}));
}

TEST(NoteFilter, AllTermsHoldAndOnePartOfEach) {
  EXPECT_TRUE(filter("channel=3 packet=90..110").takes(kSent));
  EXPECT_FALSE(filter("channel=3 packet=101..110").takes(kSent));
  EXPECT_TRUE(filter("packet=1,100,200..300 channel=3,4").takes(kSent));
  EXPECT_TRUE(filter("  channel=3  ").takes(kSent));
}

TEST(NoteFilter, StagesAreNamedOrMeantByAStar) {
  EXPECT_TRUE(filter("stage=kPacketSent").takes(kSent));
  EXPECT_FALSE(filter("stage=kPacketSent").takes({Stage::kPacketSentAgain, 3, 100, 7}));
  EXPECT_TRUE(filter("stage=kPacketSent*").takes({Stage::kPacketSentAgain, 3, 100, 7}));
  EXPECT_TRUE(filter("stage=*Again").takes({Stage::kQpPacketSentAgain, 3}));
  EXPECT_FALSE(filter("stage=*Again").takes(kSent));
  EXPECT_TRUE(filter("stage=k*Sent").takes(kSent));
  EXPECT_TRUE(filter("stage=k*e*e*").takes(kSent));
  EXPECT_TRUE(filter("stage=*,kJfcFull").takes(kSent));
  EXPECT_TRUE(filter("stage=kAck*t").takes({Stage::kAckSent, 3}));
  EXPECT_NE(refused("stage=kAckS*Sent").find("no stage has that name"), std::string::npos) << "no letter counts twice";
  EXPECT_TRUE(filter("stage=kJfcFull,kPacketSent channel=3").takes(kSent));
  EXPECT_FALSE(filter("stage=kJfcFull,kPacketSent channel=4").takes(kSent));
}

TEST(NoteFilter, OthersAreRefusedWithTheWord) {
  EXPECT_NE(refused("chanel=3").find("\"chanel=3\""), std::string::npos);
  EXPECT_NE(refused("chanel=3").find("channel, "), std::string::npos) << "the nouns that there are";
  EXPECT_NE(refused("channel").find("\"channel\""), std::string::npos);
  for (const char* text : {"channel=", "channel=x", "channel=3x", "channel=5..3", "channel=1..", "channel=-1",
                           "channel=4294967296", "packet=1,,x"})
    EXPECT_NE(refused(text).find("a number, or a range"), std::string::npos) << text;
  for (const char* text : {"stage=", "stage=kNothing", "stage=kJfcFull,kNothing"})
    EXPECT_NE(refused(text).find("no stage has that name"), std::string::npos) << text;
}

// The NIC reads it while nobody else can drive.
TEST(NoteFilter, ManyStarsTakeNoTime) {
  std::string text = "stage=";
  for (int i = 0; i < 500; ++i) text += "*e";
  EXPECT_NE(refused(text.c_str()).find("no stage has that name"), std::string::npos);
}

TEST(NoteFilter, NounsAreThoseOfTheSentences) {
  const std::vector<std::string> nouns = note_nouns();
  for (const char* noun :
       {"JFC", "JFR", "channel", "connection", "link", "message", "packet", "pair", "queue", "request", "transaction"})
    EXPECT_TRUE(std::find(nouns.begin(), nouns.end(), noun) != nouns.end()) << noun;
  for (const char* other : {"from", "send", "take", "answered;", "answered", "and"})
    EXPECT_TRUE(std::find(nouns.begin(), nouns.end(), other) == nouns.end()) << other;
}

}  // namespace
}  // namespace ub
