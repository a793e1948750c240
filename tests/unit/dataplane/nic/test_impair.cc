// SPDX-License-Identifier: Apache-2.0
// Whether the wires of a NIC can be impaired is decided when it starts, and said.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "dataplane/nic.h"
#include "lib/impair/text.h"

namespace ub {
namespace {

class NicImpair : public testing::Test {
 protected:
  void start(const std::string& send) {
    LoadedConfig config;
    config.port.kinds = {"loopback"};
    config.device.eids = {"127.3.2.4"};
    config.impair.send = send;
    std::string error;
    nic = Nic::start(config, 0, [this](const std::string& sentence) { said += sentence; }, &error);
    ASSERT_NE(nic, nullptr) << error;
  }
  Status impair(const char* text) {
    const impair::Script script = impair::parse(text).script.value();
    return nic->impair(&script, nullptr, &why);
  }

  std::unique_ptr<Nic> nic;
  std::string said, why;
};

TEST_F(NicImpair, a_nic_that_was_started_with_any_says_so_and_takes_others) {
  start("loss=1%");
  EXPECT_EQ(said,
            "the network of this NIC is impaired on purpose (impair.send, impair.receive): it sends with \"loss=1%\", "
            "and receives with \"clear\"");
  EXPECT_EQ(impair("down"), Status::kOk);
}

TEST_F(NicImpair, a_nic_that_was_started_without_takes_none) {
  start("");
  EXPECT_EQ(said, "");
  EXPECT_EQ(impair("loss=1%"), Status::kInvalid);
  EXPECT_NE(why.find("start it with impair.send"), std::string::npos) << why;
}

}  // namespace
}  // namespace ub
