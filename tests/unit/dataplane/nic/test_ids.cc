// SPDX-License-Identifier: Apache-2.0
// Ids that a program asks a NIC for by number: what nothing was made of, others of the host can have.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "dataplane/id_claims.h"
#include "dataplane/nic.h"

namespace ub {
namespace {

constexpr uint32_t kAsked = 77;

class NicIds : public testing::Test {
 protected:
  NicIds() {
    LoadedConfig config;
    config.port.kinds = {"loopback"};
    config.device.eids = {"127.3.2.3"};
    std::string error;
    nic = Nic::start(config, 0, {}, &error);
    EXPECT_NE(nic, nullptr) << error;
    others.set_addresses({wire::IpAddress::from_v4(0x7f030203)});
  }
  // Making something under the id that was asked for ends like this.
  void make(Status status, uint32_t id) {
    uint32_t wanted = kAsked, made = 0;
    const auto end_like_this = [&](Nic::NicCore&, Instant) {
      EXPECT_EQ(wanted, kAsked) << "nobody else has it";
      made = id;
      return status;
    };
    EXPECT_EQ(nic->with_id(&wanted, &made, end_like_this), status);
  }
  bool is_there_for_others() {
    std::string why;
    const bool there = others.claim_id(kAsked, &why);
    if (there) others.release_id(kAsked);
    return there;
  }

  std::unique_ptr<Nic> nic;
  IdClaims others;
};

TEST_F(NicIds, asked_for__is_taken_on_the_whole_host_until_it_is_released) {
  make(Status::kOk, kAsked);
  EXPECT_FALSE(is_there_for_others());
  nic->release_id(kAsked);
  EXPECT_TRUE(is_there_for_others());
}

TEST_F(NicIds, asked_for__is_there_for_others_if_nothing_was_made) {
  for (const Status status : {Status::kInvalid, Status::kExists, Status::kNoMemory}) {
    make(status, 0);
    EXPECT_TRUE(is_there_for_others()) << static_cast<int>(status);
  }
}

}  // namespace
}  // namespace ub
