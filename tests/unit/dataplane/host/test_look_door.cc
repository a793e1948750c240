// SPDX-License-Identifier: Apache-2.0
//
// The door at which tools ask a NIC, and the trace that they ask for.
#include "dataplane/look_door.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <optional>
#include <span>

#include "dataplane/trace.h"
#include "lib/ipc/unix_socket.h"

namespace ub {
namespace {

class LookDoorTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/look_door_test_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    directory = name;
    ASSERT_TRUE(door.open(path(), &error)) << error;
  }
  void TearDown() override { std::filesystem::remove_all(directory); }

  std::string path() const { return LookDoor::path_beside(directory + "/10.0.0.1-4792.stats"); }
  ipc::Fd visit() {
    ipc::Fd socket;
    EXPECT_EQ(ipc::connect_unix(path(), &socket, &error), ipc::SocketStatus::kOk) << error;
    return socket;
  }
  void ask(const ipc::Fd& socket, std::string_view what) {
    EXPECT_EQ(ipc::send_message(socket.get(), std::as_bytes(std::span(what)), {}), ipc::SocketStatus::kOk);
  }
  void serve() {
    door.serve([this](std::string_view request) {
      asked.emplace_back(request);
      return "ok " + std::string(request);
    });
  }
  // Nothing: there is none yet. "": the door has hung up.
  std::optional<std::string> answer(const ipc::Fd& socket) {
    std::array<std::byte, 2 * LookDoor::kMostAnswerBytes> text;
    size_t bytes = 0;
    bool had_fds = false;
    switch (ipc::receive_plain(socket.get(), text, &bytes, &had_fds)) {
      case ipc::SocketStatus::kOk:
        return std::string(reinterpret_cast<const char*>(text.data()), bytes);
      case ipc::SocketStatus::kAgain:
        return std::nullopt;
      default:
        return "";
    }
  }
  bool wants() const {
    pollfd fd{door.fd(), POLLIN, 0};
    return poll(&fd, 1, 0) == 1;
  }

  std::string directory, error;
  LookDoor door;
  std::vector<std::string> asked;
};

TEST_F(LookDoorTest, AnswersWhoAsksOneAfterTheOther) {
  EXPECT_EQ(path(), directory + "/10.0.0.1-4792.look");
  EXPECT_FALSE(wants());
  const ipc::Fd first = visit(), second = visit();
  EXPECT_TRUE(wants());
  serve();
  EXPECT_FALSE(wants());
  ask(first, "one");
  ask(second, "two");
  EXPECT_TRUE(wants());
  serve();
  EXPECT_EQ(answer(first), "ok one");
  EXPECT_EQ(answer(second), "ok two");
  ask(first, "three");
  serve();
  EXPECT_EQ(answer(first), "ok three");
  EXPECT_EQ(answer(second), std::nullopt);
}

TEST_F(LookDoorTest, WhoHangsUpIsForgotten) {
  for (size_t i = 0; i < 3 * LookDoor::kMostVisitors; ++i) {
    ipc::Fd visitor = visit();
    serve();
    visitor.reset();
    EXPECT_TRUE(wants());
    serve();
    EXPECT_FALSE(wants());
  }
  EXPECT_TRUE(asked.empty());
}

TEST_F(LookDoorTest, TooManyAreTurnedAwayWithASentence) {
  std::vector<ipc::Fd> visitors;
  for (size_t i = 0; i < LookDoor::kMostVisitors; ++i) visitors.push_back(visit());
  const ipc::Fd one_more = visit();
  serve();
  EXPECT_EQ(answer(one_more), "too many tools ask at the same time");
  EXPECT_EQ(answer(one_more), "");
  ask(visitors[0], "still there");
  serve();
  EXPECT_EQ(answer(visitors[0]), "ok still there");
}

TEST_F(LookDoorTest, WhoDoesNotReadLosesTheConnection) {
  const ipc::Fd deaf = visit();
  serve();
  const std::string_view request = "page";
  const std::string page(LookDoor::kMostAnswerBytes, 'x');
  for (int i = 0; i < 1000; ++i) {
    if (ipc::send_message(deaf.get(), std::as_bytes(std::span(request)), {}) != ipc::SocketStatus::kOk) break;
    door.serve([&](std::string_view) { return page; });
  }
  EXPECT_NE(ipc::send_message(deaf.get(), std::as_bytes(std::span(request)), {}), ipc::SocketStatus::kOk);
}

// Else the connection would wait for ever, and the thread of the NIC would never sleep again.
TEST_F(LookDoorTest, WithoutDescriptorsTurnsAwayWhoComes) {
  const ipc::Fd visitor = visit();
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = dup(0);
  ASSERT_GE(next, 0);
  close(next);
  const rlimit none_left{static_cast<rlim_t>(next), before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none_left), 0);
  serve();
  const bool still_wants = wants();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_FALSE(still_wants);
  EXPECT_EQ(answer(visitor), "") << "it hung up";
  const ipc::Fd later = visit();
  serve();
  ask(later, "again");
  serve();
  EXPECT_EQ(answer(later), "ok again");
}

TEST_F(LookDoorTest, TakesThePlaceOfOneThatIsGoneAndLeavesNothing) {
  {
    LookDoor other;
    ASSERT_TRUE(other.open(path(), &error)) << error;
    const ipc::Fd visitor = visit();
    ask(visitor, "who");
    other.serve([](std::string_view) { return "ok the new one"; });
    other.serve([](std::string_view) { return "ok the new one"; });
    EXPECT_EQ(answer(visitor), "ok the new one");
  }
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(LookDoorTest, APathThatIsTooLongIsAnError) {
  LookDoor other;
  EXPECT_FALSE(other.open(directory + "/" + std::string(200, 'x'), &error));
  EXPECT_FALSE(error.empty());
  EXPECT_FALSE(other.is_open());
}

// ---- the trace ---------------------------------------------------------------------------------------------------

struct TraceTest : testing::Test {
  bool begin(uint64_t most, std::string_view filter = "") { return trace.begin(most, filter, &why); }
  Trace trace;
  std::string why;
};

TEST_F(TraceTest, TakesSoManyThatPassItsFilter) {
  EXPECT_FALSE(trace.is_running());
  EXPECT_FALSE(trace.hear(1, {Stage::kPacketSent, 3, 100, 7}));
  ASSERT_TRUE(begin(2, "channel=3")) << why;
  EXPECT_EQ(trace.status(), "ok 0 of 2 notes, running");
  EXPECT_TRUE(trace.hear(5, {Stage::kPacketSent, 4, 1, 1}));
  EXPECT_TRUE(trace.hear(6, {Stage::kPacketSent, 3, 100, 7}));
  EXPECT_FALSE(trace.hear(7, {Stage::kPacketSentAgain, 3, 100, 7})) << "the last one";
  EXPECT_FALSE(trace.hear(8, {Stage::kPacketSent, 3, 101, 7}));
  EXPECT_EQ(trace.status(), "ok 2 of 2 notes, complete");
  EXPECT_EQ(trace.page(0, 4096),
            "ok 2 2 complete\n"
            "6 channel 3 sends packet 100 of message 7\n"
            "7 channel 3 sends packet 100 of message 7 again\n");
  EXPECT_EQ(trace.page(2, 4096), "ok 2 2 complete\n");
  EXPECT_EQ(trace.page(99, 4096), "ok 99 2 complete\n");
}

TEST_F(TraceTest, IsReadInPages) {
  ASSERT_TRUE(begin(1000));
  for (uint32_t i = 0; i < 1000; ++i) trace.hear(i, {Stage::kPacketSent, 3, i, 7});
  std::string lines;
  uint64_t next = 0;
  for (int pages = 0; next != 1000; ++pages) {
    ASSERT_LT(pages, 100);
    const std::string page = trace.page(next, 1000);
    EXPECT_LE(page.size(), 1000u);
    next = std::stoull(page.substr(3));
    lines += page.substr(page.find('\n') + 1);
  }
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 1000);
  EXPECT_NE(lines.find("999 channel 3 sends packet 999"), std::string::npos);
}

TEST_F(TraceTest, ARequestThatIsWrongLeavesWhatThereIs) {
  ASSERT_TRUE(begin(10));
  trace.hear(1, {Stage::kJfcFull, 1});
  for (const uint64_t most : {uint64_t{0}, Trace::kMostNotes + 1, UINT64_MAX}) {
    EXPECT_FALSE(begin(most));
    EXPECT_NE(why.find("1 to 1000000"), std::string::npos);
  }
  EXPECT_FALSE(begin(10, "nonsense"));
  EXPECT_EQ(trace.status(), "ok 1 of 10 notes, running");
  trace.end();
  EXPECT_EQ(trace.status(), "ok 1 of 1 notes, complete");
  EXPECT_FALSE(trace.hear(2, {Stage::kJfcFull, 1}));
  trace.clear();
  EXPECT_EQ(trace.status(), "ok there is no trace");
  ASSERT_TRUE(begin(Trace::kMostNotes)) << why;
}

}  // namespace
}  // namespace ub
