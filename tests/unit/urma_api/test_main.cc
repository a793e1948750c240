// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/urma_api/fixture.h"

namespace ub::test {

FakeBackend* fake = nullptr;
bool refuse_placement = false;
urma::DeviceSettings settings;

}  // namespace ub::test

namespace ub::urma {

Placement place_nic(uint32_t) {
  Placement placement;
  if (test::refuse_placement) {
    placement.error = "refused by the test";
    return placement;
  }
  auto backend = std::make_unique<test::FakeBackend>();
  test::fake = backend.get();
  placement.backend = std::move(backend);
  placement.settings = test::settings;
  return placement;
}

}  // namespace ub::urma

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  urma_log_set_level(URMA_VLOG_LEVEL_EMERG);  // refusals are what most tests provoke
  return RUN_ALL_TESTS();
}
