// SPDX-License-Identifier: Apache-2.0
#include "dataplane/softubd/objects.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "dataplane/id_claims.h"
#include "dataplane/softubd/client.h"
#include "lib/ipc/rendezvous.h"
#include "lib/transport/resource/segments.h"
#include "lib/transport/wire/id_port.h"

namespace ub {
namespace {

class ObjectsTest : public testing::Test {
 protected:
  ObjectsTest() {
    config.port.kinds = {"udp"};
    config.device.eids = {"127.0.0.1"};
    std::string error;
    nic = Nic::start(config, 0, {}, &error);
    EXPECT_NE(nic, nullptr) << error;
    client = Client::create(1, &error);
    EXPECT_NE(client, nullptr) << error;
    objects = std::make_unique<AppObjects>(*nic, *client);
    target.local_eid = target.eid = nic->eids().front().bytes;
    target.mode = static_cast<uint8_t>(Mode::kRm);
    target.kind = static_cast<uint8_t>(ObjectKind::kJetty);
  }
  ~ObjectsTest() override { EXPECT_TRUE(objects->destroy_all()); }

  Status import(uint32_t uasid, uint32_t* id) {
    target.uasid = uasid;
    return objects->add_target(config.daemon, target, id, &why);
  }

  // May another instance of this host have that id?
  bool is_there_for_others(uint32_t id) {
    IdClaims other;
    other.set_addresses({wire::IpAddress{nic->eids().front().bytes}});
    return other.claim_id(id, &why);
  }
  uint32_t make_group(uint32_t wanted) {
    ipc::AppQueue queue{};
    queue.wanted_id = wanted;
    uint32_t id = 0;
    EXPECT_EQ(objects->create_group(config.daemon, queue, &id, &why), Status::kOk) << why;
    return id;
  }

  uint32_t make_segment() {
    ipc::AppSegment segment{};
    segment.memory = segment.address = segment.local_address = 0x10000;
    segment.length = 64;
    segment.access = kAccessRead;
    EXPECT_EQ(objects->alloc_token(config.daemon, &segment.token_id, &why), Status::kOk) << why;
    EXPECT_EQ(objects->register_segment(config.daemon, &segment, &why), Status::kOk) << why;
    return segment.handle;
  }
  static ipc::AppName name_of(const std::string& text) {
    ipc::AppName name{};
    text.copy(name.text, sizeof name.text);
    return name;
  }

  LoadedConfig config;
  std::unique_ptr<Nic> nic;
  std::unique_ptr<Client> client;
  std::unique_ptr<AppObjects> objects;
  ipc::AppTarget target{};
  std::string why;
};

TEST_F(ObjectsTest, a_token_is_set_of_its_own_objects_alone) {
  GroupConfig config_of_other;
  config_of_other.token = {true, 5};
  uint32_t other = 0;
  ASSERT_EQ(nic->with_id(&config_of_other.wanted_id, &other,
                         [&](Nic::NicCore& core, Instant) { return core.create_group(config_of_other, &other); }),
            Status::kOk);
  EXPECT_EQ(objects->set_queue_token(other, {7, 5}), Status::kInvalid);
  SegmentConfig segment_of_other;
  std::byte memory[64];
  segment_of_other.memory = memory;
  segment_of_other.length = sizeof memory;
  segment_of_other.token = {true, 5};
  RegisteredSegment segment;
  const auto add = [&](Nic::NicCore& core, Instant) { return core.register_segment(segment_of_other, &segment); };
  ASSERT_EQ(nic->with_id(add), Status::kOk);
  EXPECT_EQ(objects->set_segment_token(segment.handle, {7, 5}), Status::kInvalid);

  ipc::AppQueue queue{};
  uint32_t open = 0, own = 0;
  ASSERT_EQ(objects->create_group(config.daemon, queue, &open, &why), Status::kOk) << why;
  queue.token_required = 1;
  queue.token_value = 5;
  ASSERT_EQ(objects->create_group(config.daemon, queue, &own, &why), Status::kOk) << why;
  EXPECT_EQ(objects->set_queue_token(own, {7, 5}), Status::kOk);
  EXPECT_EQ(objects->set_queue_token(open, {7, 5}), Status::kInvalid) << "it asks for none";
}

TEST_F(ObjectsTest, a_segment_becomes_exclusive_if_it_is_its_own) {
  std::byte memory[64];
  SegmentConfig config_of_other;
  config_of_other.memory = memory;
  config_of_other.length = sizeof memory;
  RegisteredSegment other;
  const auto add = [&](Nic::NicCore& core, Instant) { return core.register_segment(config_of_other, &other); };
  ASSERT_EQ(nic->with_id(add), Status::kOk);
  EXPECT_EQ(objects->set_segment_exclusive(other.handle, true), Status::kInvalid);
  for (const bool registered_so : {false, true}) {
    ipc::AppSegment own{};
    own.memory = 0x10000;
    own.length = sizeof memory;
    own.access = kAccessRead;
    own.exclusive = registered_so;
    ASSERT_EQ(objects->alloc_token(config.daemon, &own.token_id, &why), Status::kOk) << why;
    ASSERT_EQ(objects->register_segment(config.daemon, &own, &why), Status::kOk) << why;
    const auto is_exclusive = [&] {
      return nic->control(
          [&](Nic::NicCore& core, Instant) {
            return core.state().segments[own.handle & 0xFFFFF].access > kAccessRights;
          });
    };
    EXPECT_EQ(is_exclusive(), registered_so);
    EXPECT_EQ(objects->set_segment_exclusive(own.handle, !registered_so), Status::kOk);
    EXPECT_EQ(is_exclusive(), !registered_so);
  }
}

// All applications share the table of peers.
TEST_F(ObjectsTest, a_name_is_given_to_its_own_segments_alone) {
  std::byte memory[64];
  SegmentConfig config_of_other;
  config_of_other.memory = memory;
  config_of_other.length = sizeof memory;
  RegisteredSegment other;
  const auto add = [&](Nic::NicCore& core, Instant) { return core.register_segment(config_of_other, &other); };
  ASSERT_EQ(nic->with_id(add), Status::kOk);
  EXPECT_EQ(objects->publish(other.handle, name_of("others"), &why), Status::kInvalid);
  ASSERT_EQ(nic->publish(Owner{0}, other.handle, "others", &why), Status::kOk) << why;
  EXPECT_EQ(objects->unpublish(other.handle), Status::kInvalid);

  const uint32_t own = make_segment();
  for (const std::string& bad : {std::string(), std::string("a b"), std::string(64, 'x')}) {
    EXPECT_EQ(objects->publish(own, name_of(bad), &why), Status::kInvalid) << bad;
  }
  EXPECT_EQ(objects->publish(own, name_of("others"), &why), Status::kExists);
  EXPECT_EQ(objects->publish(own, name_of("own"), &why), Status::kOk) << why;
}

TEST_F(ObjectsTest, names_end_with_their_segment_and_with_their_application) {
  const uint32_t id = ids_of_name("own")[0];
  const uint32_t first = make_segment();
  ASSERT_EQ(objects->publish(first, name_of("own"), &why), Status::kOk) << why;
  EXPECT_FALSE(is_there_for_others(id));
  ASSERT_EQ(objects->unregister_segment(first), Status::kOk);
  EXPECT_TRUE(is_there_for_others(id));
  ASSERT_EQ(objects->publish(make_segment(), name_of("own"), &why), Status::kOk) << why;
  EXPECT_FALSE(is_there_for_others(id));
  EXPECT_TRUE(objects->destroy_all());
  EXPECT_TRUE(is_there_for_others(id));
}

TEST_F(ObjectsTest, a_fault_is_checked_and_ends_with_its_application) {
  const auto inject = [&](uint32_t n, uint8_t by) {
    ipc::AppFault fault{};
    fault.n = n;
    fault.by = by;
    return objects->inject_rnr(fault, &why);
  };
  const auto has_rule = [&] {
    return nic->control([&](Nic::NicCore& core, Instant) { return core.state().rnr_faults.any(); });
  };
  EXPECT_EQ(inject(0, 0), Status::kInvalid) << "every 0th";
  EXPECT_EQ(inject(1, 3), Status::kInvalid) << "chosen in no way that there is";
  EXPECT_FALSE(has_rule());
  EXPECT_EQ(inject(1, 0), Status::kOk);
  EXPECT_TRUE(has_rule());
  EXPECT_EQ(inject(0, ipc::AppFault::kNone), Status::kOk);
  EXPECT_FALSE(has_rule());
  EXPECT_EQ(inject(1, 0), Status::kOk);
  EXPECT_EQ(objects->injected_rnr(), 0u);
  EXPECT_TRUE(objects->destroy_all());
  EXPECT_FALSE(has_rule());
}

TEST_F(ObjectsTest, peers_of_one_application_are_limited) {
  config.daemon.app_peers = 3;
  std::vector<uint32_t> ids(4);
  for (uint32_t n = 0; n < 3; ++n) ASSERT_EQ(import(0x10000 + n, &ids[n]), Status::kOk) << why;
  EXPECT_EQ(import(0x20000, &ids[3]), Status::kNoMemory);
  EXPECT_NE(why.find("daemon.app_peers = 3"), std::string::npos) << why;
  EXPECT_EQ(import(0x10001, &ids[3]), Status::kOk) << "another target of a peer that counts already";
  EXPECT_EQ(objects->remove_target(ids[1]), Status::kOk);
  uint32_t id;
  EXPECT_EQ(import(0x20000, &id), Status::kNoMemory) << "one target still names it";
  EXPECT_EQ(objects->remove_target(ids[3]), Status::kOk);
  EXPECT_EQ(import(0x20000, &id), Status::kOk) << why;
  EXPECT_EQ(objects->remove_target(ids[1]), Status::kInvalid);
}

// What an application held that died is there for processes that are no applications of this daemon, too.
TEST_F(ObjectsTest, ids_asked_for_are_given_back_with_all_objects) {
  constexpr size_t kBytes = 64 << 10;
  uint32_t area = 0, bell = 0, id = 0;
  ipc::Fd fd;
  ASSERT_EQ(objects->add_area(config.daemon, kBytes, 0, &area, &fd, &why), Status::kOk) << why;
  ASSERT_TRUE(ipc::seal_against_holes(fd.get(), &why)) << why;
  ASSERT_EQ(objects->area_mapped(area, &why), Status::kOk) << why;
  ipc::AppQueue queue{};
  queue.ring = {area, 4, 0};
  queue.depth = 4;
  queue.mode = static_cast<uint8_t>(Mode::kRm);
  queue.kind = static_cast<uint8_t>(ObjectKind::kJetty);
  ASSERT_EQ(objects->create_jfc(config, queue, &queue.jfc, &bell, &why), Status::kOk) << why;
  queue.recv_jfc = queue.jfc;
  queue.wanted_id = 2901;
  queue.ring.offset = 16 << 10;
  ASSERT_EQ(objects->create_jfr(config, queue, &queue.jfr, &why), Status::kOk) << why;
  EXPECT_EQ(queue.jfr, 2901u);
  queue.wanted_id = 2902;
  queue.ring.offset = 32 << 10;
  ASSERT_EQ(objects->create_jetty(config, queue, &id, &bell, &why), Status::kOk) << why;
  EXPECT_EQ(id, 2902u);
  EXPECT_EQ(make_group(2903), 2903u);
  for (uint32_t held : {2901, 2902, 2903}) EXPECT_FALSE(is_there_for_others(held)) << held;
  while (!objects->destroy_all()) {
  }
  for (uint32_t held : {2901, 2902, 2903}) EXPECT_TRUE(is_there_for_others(held)) << held << ": " << why;
}

// Whoever asks again for an id that it has, gets another one, and holds the first no longer than its object lives.
TEST_F(ObjectsTest, an_id_asked_for_twice_is_given_back_with_its_object) {
  EXPECT_EQ(make_group(2904), 2904u);
  const uint32_t other = make_group(2904);
  EXPECT_NE(other, 2904u);
  EXPECT_EQ(objects->destroy_group(other), Status::kOk);
  EXPECT_FALSE(is_there_for_others(2904));
  EXPECT_EQ(objects->destroy_group(2904), Status::kOk);
  EXPECT_TRUE(is_there_for_others(2904)) << why;
  EXPECT_NE(make_group(2904), 2904u) << "it rests";
  EXPECT_TRUE(is_there_for_others(2904)) << why;
}

// Somebody else is at the socket that a dead process named: what he does not have, another one may.
TEST(FindInstance, a_link_that_is_old_is_not_believed) {
  char directory[] = "/tmp/softub-find-XXXXXX";
  ASSERT_NE(::mkdtemp(directory), nullptr);
  LoadedConfig config;
  config.port.kinds = {"shm", "udp"};
  config.port.shm_dir = directory;
  config.device.eids = {"127.3.2.7"};
  std::string why;
  {
    const auto named = Nic::start(config, 0, {}, &why), holder = Nic::start(config, 0, {}, &why),
               asker = Nic::start(config, 0, {}, &why);
    ASSERT_TRUE(named != nullptr && holder != nullptr && asker != nullptr) << why;
    GroupConfig group;
    group.wanted_id = 2905;
    uint32_t id = 0;
    ASSERT_EQ(holder->with_id(&group.wanted_id, &id,
                              [&](Nic::NicCore& core, Instant) { return core.create_group(group, &id); }),
              Status::kOk);
    ASSERT_EQ(id, 2905u);
    const Eid eid = asker->eids().front();
    ipc::Rendezvous dead;
    ASSERT_TRUE(dead.open(directory, &why)) << why;
    dead.announce({eid.bytes, wire::port_of_id(id)}, named->uasid() ^ 0x10000);
    uint32_t uasid = 0;
    Status status;
    while ((status = asker->find_instance(eid, eid, id, false, &uasid, &why)) == Status::kBusy) asker->drive();
    EXPECT_EQ(status, Status::kOk) << why;
    EXPECT_EQ(uasid, holder->uasid());
    EXPECT_EQ(dead.holder({eid.bytes, wire::port_of_id(id)}), std::nullopt);
  }
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace ub
