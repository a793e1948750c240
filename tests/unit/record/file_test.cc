// SPDX-License-Identifier: Apache-2.0
#include "lib/record/file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>

#include "lib/base/bytes.h"

namespace ub::record {
namespace {

class FileTest : public testing::Test {
 protected:
  FileTest() {
    char name[] = "/tmp/softub-record-XXXXXX";
    directory = mkdtemp(name);
    path = directory + "/a.rec";
  }
  ~FileTest() override { std::filesystem::remove_all(directory); }

  std::string directory, path, why;
};

TEST_F(FileTest, WhatWasCommittedIsThereThoughNobodyEndedIt) {
  auto writer = FileWriter::create(path, 8 << 20, &why);
  ASSERT_NE(writer, nullptr) << why;
  std::byte* at = writer->room(3);
  std::memcpy(at, "abc", 3);
  writer->commit(at + 3);
  std::memcpy(writer->room(3), "xyz", 3);  // never committed
  auto reader = FileReader::open(path, &why);
  ASSERT_NE(reader, nullptr) << why;
  EXPECT_EQ(std::memcmp(reader->body().data(), "abc", 3), 0);
  EXPECT_EQ(reader->body().size(), 3u);
  EXPECT_EQ(static_cast<Ended>(reader->header().ended.load()), Ended::kNot);
  EXPECT_STREQ(reader->header().commit, built_commit());
}

TEST_F(FileTest, ItIsForItsUserAlone) {
  ASSERT_NE(FileWriter::create(path, 8 << 20, &why), nullptr);
  struct stat st {};
  ASSERT_EQ(stat(path.c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0600u);
  EXPECT_EQ(FileWriter::create(path, 8 << 20, &why), nullptr);
  EXPECT_NE(why.find("File exists"), std::string::npos) << why;
}

TEST_F(FileTest, AnEndedFileHasNoMoreThanItNeeds) {
  auto writer = FileWriter::create(path, 64 << 20, &why);
  writer->commit(writer->room(100) + 100);
  writer->finish(Ended::kStopped);
  EXPECT_EQ(std::filesystem::file_size(path), kHeaderPage + 100);
  writer.reset();
  auto reader = FileReader::open(path, &why);
  EXPECT_EQ(static_cast<Ended>(reader->header().ended.load()), Ended::kStopped);
  EXPECT_FALSE(reader->is_cut());
}

TEST_F(FileTest, EntriesThatWereChangedAreNoticed) {
  auto writer = FileWriter::create(path, 8 << 20, &why);
  writer->seal_image();
  const auto put = [&](size_t bytes) {
    std::byte* at = writer->room(bytes);
    std::memset(at, 7, bytes);
    writer->commit(at + bytes);
    writer->end_piece_if_large();
  };
  for (int i = 0; i < 3; ++i) put(40000);
  writer->finish(Ended::kStopped);
  auto reader = FileReader::open(path, &why);
  ASSERT_TRUE(reader->has_good_image());
  const std::byte* at = reader->body().data();
  for (const uint32_t bytes : {80000u, 40000u}) {
    ASSERT_EQ(static_cast<Entry>(*at), Entry::kPiece);
    ASSERT_EQ(load_le32(at + 1), bytes);
    const uint32_t sum = load_le32(at + 5);
    at += 9;
    EXPECT_TRUE(reader->is_good_piece(at, bytes, sum));
    EXPECT_FALSE(reader->is_good_piece(at, bytes, sum ^ 1));
    EXPECT_FALSE(reader->is_good_piece(at, bytes - 1, sum));
    EXPECT_FALSE(reader->is_good_piece(at, 100000, sum)) << "so many are not there";
    at += bytes;
  }
  EXPECT_EQ(at, reader->body().data() + reader->body().size());
}

TEST_F(FileTest, AFileIsNotLargerThanItsProcessMayMakeOne) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit less{2 << 20, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &less), 0);
  auto writer = FileWriter::create(path, 8 << 20, &why);
  ASSERT_NE(writer, nullptr) << why;
  EXPECT_NE(writer->room(1 << 20), nullptr);
  EXPECT_EQ(writer->room(2 << 20), nullptr) << "and no signal has killed this process";
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
}

TEST_F(FileTest, ThereIsNoRoomBeyondItsLimit) {
  auto writer = FileWriter::create(path, 4 << 20, &why);
  size_t bytes = 0;
  for (; writer->room(1 << 16) != nullptr; bytes += 1 << 16) writer->commit(writer->room(1 << 16) + (1 << 16));
  EXPECT_EQ(bytes, ((4u << 20) - kHeaderPage) / (1 << 16) * (1 << 16));
}

// A page of a hole on a full disk would be a SIGBUS.
TEST_F(FileTest, AFullDiskIsNoCrash) {
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{3 << 20, 3 << 20};
  const pid_t child = fork();
  if (child == 0) {
    setrlimit(RLIMIT_FSIZE, &small);
    std::string error;
    auto writer = FileWriter::create(path, 2 << 20, &error);
    if (writer == nullptr) _exit(1);
    auto large = FileWriter::create(path + "2", 64 << 20, &error);
    if (large == nullptr) _exit(2);
    size_t rooms = 0;
    for (; large->room(1 << 16) != nullptr; ++rooms) {
      std::memset(large->room(1 << 16), 1, 1 << 16);
      large->commit(large->room(1 << 16) + (1 << 16));
    }
    _exit(rooms > 10 && rooms < 64 ? 0 : 3);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace ub::record
