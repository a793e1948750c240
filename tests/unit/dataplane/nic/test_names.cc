// SPDX-License-Identifier: Apache-2.0
// Names that a NIC publishes: each is a token id of the host, under which its entry can be read.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>

#include "dataplane/id_claims.h"
#include "dataplane/nic.h"

namespace ub {
namespace {

constexpr Owner kOwner = 3, kOther = 4;

class NicNames : public testing::Test {
 protected:
  NicNames() {
    LoadedConfig config;
    config.port.kinds = {"loopback"};
    config.device.eids = {"127.3.2.4"};
    std::string error;
    nic = Nic::start(config, 0, {}, &error);
    EXPECT_NE(nic, nullptr) << error;
    others.set_addresses({wire::IpAddress::from_v4(0x7f030204)});
  }
  uint32_t make_segment(Owner owner = kOwner) {
    SegmentConfig config;
    config.memory = memory.data();
    config.address = config.local_address = 0x10000;
    config.length = memory.size();
    config.access = kAccessRead | kAccessWrite;
    config.token = {true, 4711};
    config.owner = owner;
    RegisteredSegment registered;
    EXPECT_EQ(nic->with_id([&](Nic::NicCore& core, Instant) { return core.register_segment(config, &registered); }),
              Status::kOk);
    token_id = registered.token_id;
    return registered.handle;
  }
  Status publish(uint32_t segment, const std::string& name, Owner owner = kOwner) {
    said.clear();
    const Status status = nic->publish(owner, segment, name, &said);
    EXPECT_EQ(said.empty(), status == Status::kOk) << said;
    return status;
  }
  // What a peer reads under that id; empty: it may not, or it is no entry of that name.
  std::optional<PublicSegment> read(uint32_t id, const std::string& name) {
    return nic->control([&](Nic::NicCore& core, Instant) -> std::optional<PublicSegment> {
      const RemoteAccess access{id, false, 0, kNameEntryAddress, kNameEntryBytes, kAccessRead};
      if (core.accessible_segment(access) == 0) return std::nullopt;
      NameEntryBytes bytes;
      const std::byte* entry = remote_memory(const_cast<CoreState&>(core.state()), access, nullptr);
      std::copy_n(entry, bytes.size(), bytes.begin());
      return read_name_entry(name, bytes);
    });
  }
  bool is_there_for_others(uint32_t id) {
    std::string why;
    const bool there = others.claim_id(id, &why);
    if (there) others.release_id(id);
    return there;
  }

  std::array<std::byte, 4096> memory{};
  uint32_t token_id = 0;
  std::unique_ptr<Nic> nic;
  IdClaims others;
  std::string said;
};

TEST_F(NicNames, published__says_what_the_segment_is_but_not_its_token) {
  const uint32_t segment = make_segment();
  ASSERT_EQ(publish(segment, "table"), Status::kOk);
  const auto entry = read(ids_of_name("table")[0], "table");
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->address, 0x10000u);
  EXPECT_EQ(entry->length, memory.size());
  EXPECT_EQ(entry->token_id, token_id);
  EXPECT_EQ(entry->access, kAccessRead | kAccessWrite);
  EXPECT_TRUE(entry->token_required);
}

TEST_F(NicNames, published__is_taken_on_the_whole_host_until_it_is_unpublished) {
  const uint32_t segment = make_segment(), id = ids_of_name("table")[0];
  EXPECT_TRUE(is_there_for_others(id));
  ASSERT_EQ(publish(segment, "table"), Status::kOk);
  EXPECT_FALSE(is_there_for_others(id));
  EXPECT_EQ(nic->unpublish(segment), Status::kOk);
  EXPECT_TRUE(is_there_for_others(id));
  EXPECT_FALSE(read(id, "table"));
  EXPECT_EQ(nic->unpublish(segment), Status::kInvalid);
  EXPECT_EQ(publish(segment, "table"), Status::kOk) << "and again, at once";
}

TEST_F(NicNames, second_name__is_refused_for_the_same_name_or_the_same_segment) {
  const uint32_t segment = make_segment(), another = make_segment();
  ASSERT_EQ(publish(segment, "table"), Status::kOk);
  EXPECT_EQ(publish(another, "table"), Status::kExists);
  EXPECT_EQ(publish(segment, "chair"), Status::kExists);
  EXPECT_EQ(publish(another, "chair"), Status::kOk);
}

TEST_F(NicNames, segment_of_another_owner__is_refused) {
  EXPECT_EQ(publish(make_segment(kOther), "table"), Status::kInvalid);
  EXPECT_TRUE(is_there_for_others(ids_of_name("table")[0])) << "nothing is left of it";
}

TEST_F(NicNames, ids_that_others_have__are_passed) {
  const auto ids = ids_of_name("table");
  std::string why;
  ASSERT_TRUE(others.claim_id(ids[0], &why)) << why;
  const uint32_t segment = make_segment();
  ASSERT_EQ(publish(segment, "table"), Status::kOk);
  EXPECT_TRUE(read(ids[1], "table"));
  ASSERT_EQ(nic->unpublish(segment), Status::kOk);
  for (size_t i = 1; i < ids.size(); ++i) ASSERT_TRUE(others.claim_id(ids[i], &why)) << why;
  EXPECT_EQ(publish(segment, "table"), Status::kNoMemory);
}

TEST_F(NicNames, too_many__is_a_matter_of_each_owner) {
  uint32_t last = 0;
  for (size_t i = 0; i < Nic::kMaxNames; ++i) {
    ASSERT_EQ(publish(last = make_segment(), "table" + std::to_string(i)), Status::kOk) << said;
  }
  EXPECT_EQ(publish(make_segment(), "one more"), Status::kNoMemory);
  EXPECT_EQ(publish(make_segment(kOther), "of another", kOther), Status::kOk);
  EXPECT_EQ(nic->unpublish(last), Status::kOk);
  EXPECT_EQ(publish(make_segment(), "one more"), Status::kOk);
}

}  // namespace
}  // namespace ub
