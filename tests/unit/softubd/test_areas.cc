// SPDX-License-Identifier: Apache-2.0
#include "dataplane/softubd/areas.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace ub {
namespace {

constexpr size_t kBytes = 64 << 10;

class AreasTest : public testing::Test {
 protected:
  bool punch() { return fallocate(fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, kBytes) == 0; }

  Areas areas;
  ipc::Fd fd;
  std::string error;
};

TEST_F(AreasTest, used_only_once_it_cannot_have_holes) {
  uint32_t area = areas.add(kBytes, ipc::AreaUse::kBoth, &fd, &error);
  ASSERT_NE(area, 0u) << error;
  ipc::Mapping theirs;
  ASSERT_TRUE(theirs.map(fd.get(), kBytes, &error));
  EXPECT_TRUE(punch());
  EXPECT_EQ(areas.use(area, 0, 64), nullptr);
  EXPECT_FALSE(areas.begin_use(area, &error));
  EXPECT_NE(error.find("not sealed"), std::string::npos) << error;
  ASSERT_TRUE(ipc::seal_against_holes(fd.get(), &error)) << error;
  ASSERT_TRUE(areas.begin_use(area, &error)) << error;
  EXPECT_FALSE(punch());
  std::byte* ours = areas.use(area, 4096, 64);
  ASSERT_NE(ours, nullptr);
  theirs.data()[4096] = std::byte{7};
  EXPECT_EQ(*ours, std::byte{7});
  EXPECT_FALSE(ipc::Mapping().map(fd.get(), kBytes, &error)) << "mapped for writing after the seal";
  EXPECT_FALSE(areas.drop(area)) << "in use";
  areas.release(area);
  EXPECT_TRUE(areas.drop(area));
  EXPECT_EQ(areas.bytes(), 0u);
}

TEST_F(AreasTest, use_begins_once) {
  uint32_t area = areas.add(kBytes, ipc::AreaUse::kBoth, &fd, &error);
  EXPECT_FALSE(areas.begin_use(area + 1, &error));
  ASSERT_TRUE(ipc::seal_against_holes(fd.get(), &error));
  EXPECT_TRUE(areas.begin_use(area, &error));
  EXPECT_FALSE(areas.begin_use(area, &error));
}

TEST_F(AreasTest, places_are_checked) {
  uint32_t area = areas.add(kBytes, ipc::AreaUse::kBoth, &fd, &error);
  ASSERT_TRUE(ipc::seal_against_holes(fd.get(), &error) && areas.begin_use(area, &error));
  EXPECT_NE(areas.use(area, 0, kBytes), nullptr);
  EXPECT_EQ(areas.use(area, 1, kBytes), nullptr);
  EXPECT_EQ(areas.use(area, UINT64_MAX, 2), nullptr);
  EXPECT_EQ(areas.use(area, 2, UINT64_MAX), nullptr);
  EXPECT_EQ(areas.use(area + 1, 0, 1), nullptr);
}

// Those that were never mapped hold descriptors: few. Dropping one, or mapping it, makes room.
TEST_F(AreasTest, limits) {
  std::vector<uint32_t> unsealed;
  std::vector<ipc::Fd> fds;
  while (uint32_t area = areas.add(4096, ipc::AreaUse::kBoth, &fd, &error)) {
    unsealed.push_back(area);
    fds.push_back(std::move(fd));
  }
  EXPECT_NE(error.find("not yet mapped"), std::string::npos) << error;
  ASSERT_GE(unsealed.size(), 2u);
  EXPECT_TRUE(areas.drop(unsealed[0]));
  EXPECT_NE(areas.add(4096, ipc::AreaUse::kBoth, &fd, &error), 0u);
  EXPECT_TRUE(ipc::seal_against_holes(fds[1].get(), &error) && areas.begin_use(unsealed[1], &error));
  EXPECT_NE(areas.add(4096, ipc::AreaUse::kBoth, &fd, &error), 0u);
  EXPECT_EQ(areas.add(4096, ipc::AreaUse::kBoth, &fd, &error), 0u);

  Areas all;
  size_t count = 0;
  for (uint32_t area; (area = all.add(4096, ipc::AreaUse::kBoth, &fd, &error)) != 0; ++count) {
    ASSERT_TRUE(ipc::seal_against_holes(fd.get(), &error) && all.begin_use(area, &error));
  }
  EXPECT_GE(count, 64u);
  EXPECT_LE(count, 1024u);
}

// Memory that others may write is not for the daemon, who may be made to wait at holes in it.
TEST_F(AreasTest, what_others_may_write_is_not_mapped) {
  const uint32_t area = areas.add(kBytes, ipc::AreaUse::kWrite, &fd, &error);
  ASSERT_NE(area, 0u) << error;
  EXPECT_EQ(areas.use(area, 0, 64), nullptr);
  EXPECT_FALSE(areas.begin_use(area, &error));
  EXPECT_FALSE(ipc::seal_against_holes(fd.get(), &error)) << "it stays as writable as it is";
  ASSERT_TRUE(areas.use_unmapped(area));
  EXPECT_FALSE(areas.drop(area)) << "in use";
  areas.release(area);
  EXPECT_TRUE(areas.drop(area));
  EXPECT_EQ(areas.bytes(), 0u);
}

TEST_F(AreasTest, only_all_of_a_shared_area_is_offered) {
  const uint32_t both = areas.add(kBytes, ipc::AreaUse::kBoth, &fd, &error);
  const uint32_t area = areas.add(kBytes, ipc::AreaUse::kRead, &fd, &error);
  ASSERT_TRUE(ipc::seal_against_holes(fd.get(), &error));
  ASSERT_TRUE(areas.begin_use(area, &error)) << error;
  EXPECT_NE(areas.use(area, 0, kBytes), nullptr);
  ASSERT_TRUE(areas.share_of(area, 0, kBytes - 100));
  EXPECT_FALSE(areas.share_of(area, 0, kBytes)->writable);
  EXPECT_FALSE(areas.share_of(area, 0, kBytes - 4096));
  EXPECT_FALSE(areas.share_of(area, 0, kBytes + 1));
  EXPECT_FALSE(areas.share_of(area, 4096, kBytes - 4096));
  EXPECT_FALSE(areas.share_of(both, 0, kBytes));
  EXPECT_FALSE(areas.use_unmapped(area));
  EXPECT_GE(areas.shared_memory(area), 0);
  EXPECT_EQ(areas.shared_memory(both), -1);
}

}  // namespace
}  // namespace ub
