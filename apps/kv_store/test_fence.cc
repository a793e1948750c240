// SPDX-License-Identifier: Apache-2.0
//
// What a client may do in the server's memory, and until when: a client by hand, which keeps to no rule.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <thread>

#include "apps/aperture/memory.h"
#include "apps/kv_store/greeting.h"
#include "apps/kv_store/objects.h"
#include "apps/kv_store/server.h"
#include "tools/common/hex.h"

namespace ub::kv {
namespace {

class WildClient {
 public:
  WildClient(urma_context_t* context, uint16_t port, bool writes)
      : token_(random_token()),
        jfc_(make_jfc(context, 16)),
        jfr_(make_jfr(context, 1, jfc_.get(), token_)),
        jetty_(make_jetty(context, 4, jfc_.get(), jfr_.get())),
        peer_(std::in_place, tools::TcpSocket::connect("localhost", port), kProgram, "the server"),
        memory_(allocate(4096)),
        segment_(register_memory(context, memory_.get(), 4096, URMA_ACCESS_LOCAL_ONLY)) {
    const Introduction us = {jetty_->jetty_id, token_};
    peer_->send("hello",
                {{"version", kVersion}, {"wants", "store"}, {"client", tools::to_hex(us)}, {"writes", writes}});
    const auto welcome = tools::from_hex<Welcome>(peer_->expect("welcome", kGreetingMs).value("server", ""));
    server_ = import_jetty(context, welcome.server.queue, welcome.server.token);
    there_ = import_memory(context, welcome.memory, welcome.memory_token, access_of(true));
  }

  urma_cr_status_t request(urma_opcode_t opcode) {
    urma_sge_t here = piece(memory_.get(), 8, segment_), far = piece(there_->seg.ubva.va, 8, there_.get());
    urma_jfs_wr_t request = {}, *bad = nullptr;
    request.opcode = opcode;
    request.flag.bs.complete_enable = 1;
    request.tjetty = server_.get();
    if (opcode == URMA_OPC_CAS) {
      request.cas.dst = &far;
      request.cas.src = &here;
    } else {
      request.rw.src = {opcode == URMA_OPC_READ ? &far : &here, 1};
      request.rw.dst = {opcode == URMA_OPC_READ ? &here : &far, 1};
    }
    EXPECT_EQ(urma_post_jetty_send_wr(jetty_.get(), &request, &bad), URMA_SUCCESS);
    urma_cr_t record = {};
    while (urma_poll_jfc(jfc_.get(), 1, &record) == 0) std::this_thread::yield();
    return record.status;
  }
  void hang_up() { peer_.reset(); }

 private:
  urma_token_t token_;
  Jfc jfc_;
  Jfr jfr_;
  Jetty jetty_;
  std::optional<tools::Peer> peer_;
  Memory memory_;
  Segment segment_;
  TargetJetty server_;
  TargetSegment there_;
};

class FenceTest : public ::testing::Test {
 protected:
  FenceTest() : server_(config()), thread_([this](std::stop_token stop) { server_.run(stop); }) {}

  ServerConfig config() const {
    ServerConfig c;
    c.context = device_.context();
    c.port = 0;
    c.memory = 16 << 20;
    c.receives = 16;
    return c;
  }

  apps::Device device_{""};
  Server server_;
  std::jthread thread_;
};

TEST_F(FenceTest, who_does_not_say_that_it_writes_may_only_read) {
  WildClient client(device_.context(), server_.port(), false);
  EXPECT_EQ(client.request(URMA_OPC_READ), URMA_CR_SUCCESS);
  EXPECT_EQ(client.request(URMA_OPC_WRITE), URMA_CR_REM_ACCESS_ABORT_ERR);
  EXPECT_EQ(client.request(URMA_OPC_CAS), URMA_CR_REM_ACCESS_ABORT_ERR);
}

// The server gives its grants to others, so that nothing of it may arrive afterwards.
TEST_F(FenceTest, who_was_ended_can_do_nothing_any_more) {
  WildClient ended(device_.context(), server_.port(), true), other(device_.context(), server_.port(), true);
  EXPECT_EQ(ended.request(URMA_OPC_WRITE), URMA_CR_SUCCESS);
  EXPECT_EQ(ended.request(URMA_OPC_CAS), URMA_CR_SUCCESS);
  ended.hang_up();
  while (ended.request(URMA_OPC_READ) == URMA_CR_SUCCESS) std::this_thread::yield();
  EXPECT_EQ(ended.request(URMA_OPC_WRITE), URMA_CR_REM_ACCESS_ABORT_ERR);
  EXPECT_EQ(ended.request(URMA_OPC_CAS), URMA_CR_REM_ACCESS_ABORT_ERR);
  EXPECT_EQ(other.request(URMA_OPC_WRITE), URMA_CR_SUCCESS);
}

}  // namespace
}  // namespace ub::kv
