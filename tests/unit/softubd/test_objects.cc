// SPDX-License-Identifier: Apache-2.0
#include "dataplane/softubd/objects.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "dataplane/softubd/client.h"

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

  LoadedConfig config;
  std::unique_ptr<Nic> nic;
  std::unique_ptr<Client> client;
  std::unique_ptr<AppObjects> objects;
  ipc::AppTarget target{};
  std::string why;
};

// All applications share the table of peers.
TEST_F(ObjectsTest, PeersOfOneApplicationAreLimited) {
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

}  // namespace
}  // namespace ub
