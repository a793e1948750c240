// SPDX-License-Identifier: Apache-2.0
//
// A server and its clients in one process.
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "apps/aperture/memory.h"
#include "apps/kv_store/client.h"
#include "apps/kv_store/server.h"

namespace ub::kv {
namespace {

class ClientTest : public ::testing::TestWithParam<Mode> {
 protected:
  ClientTest() { start_server({}); }
  ~ClientTest() override { stop_server(); }

  void start_server(ServerConfig config) {
    stop_server();
    config.context = device_.context();
    config.port = 0;
    config.memory = 16 << 20;
    config.receives = 32;
    server_ = std::make_unique<Server>(config);
    thread_ = std::jthread([this](std::stop_token stop) { server_->run(stop); });
  }
  void stop_server() {
    if (!server_) return;
    thread_.request_stop();
    thread_.join();
    server_.reset();
  }
  ClientConfig config(Mode mode = GetParam()) const {
    ClientConfig c;
    c.context = device_.context();
    c.host = "localhost";
    c.port = server_->port();
    c.mode = mode;
    c.hints = 1024;
    return c;
  }

  // All that ends until nothing is under way.
  static std::vector<uint64_t> cookies_of_all(Client& client) {
    std::vector<uint64_t> cookies;
    Completion ended[3];
    while (client.under_way() != 0) {
      const size_t count = client.poll(ended);
      for (size_t i = 0; i < count; ++i) {
        EXPECT_EQ(ended[i].status, Status::kOk) << client.error();
        cookies.push_back(ended[i].cookie);
      }
      if (count == 0) std::this_thread::yield();
    }
    return cookies;
  }

  apps::Device device_{""};
  std::unique_ptr<Server> server_;
  std::jthread thread_;
};

INSTANTIATE_TEST_SUITE_P(Modes, ClientTest, ::testing::Values(Mode::kRead, Mode::kWrite, Mode::kLoad));

TEST_P(ClientTest, does_what_it_is_told) {
  Client client(config());
  std::string value;
  EXPECT_EQ(get(client, "user1", &value), Status::kNotFound);
  EXPECT_EQ(put(client, "user1", "one"), Status::kOk);
  EXPECT_EQ(get(client, "user1", &value), Status::kOk);
  EXPECT_EQ(value, "one");
  EXPECT_EQ(insert(client, "user1", "two"), Status::kExists);
  EXPECT_EQ(put(client, "user1", ""), Status::kOk);
  EXPECT_EQ(get(client, "user1", &value), Status::kOk);
  EXPECT_EQ(value, "");
  EXPECT_EQ(remove(client, "user1"), Status::kOk);
  EXPECT_EQ(remove(client, "user1"), Status::kNotFound);
  EXPECT_EQ(get(client, "user1", &value), Status::kNotFound);
  EXPECT_EQ(insert(client, "user1", "two"), Status::kOk);
  EXPECT_EQ(get(client, "user1", &value), Status::kOk);
  EXPECT_EQ(value, "two");
}

TEST_P(ClientTest, takes_keys_and_values_of_any_length) {
  Client client(config());
  for (uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{63}, uint64_t{64}, uint64_t{5000}, client.most_value()}) {
    const std::string key(1 + bytes % client.most_key(), 'k'), sent(bytes, static_cast<char>(bytes));
    for (int round = 0; round < 2; ++round) {
      std::string got;
      ASSERT_EQ(put(client, key, sent), Status::kOk) << client.error();
      ASSERT_EQ(get(client, key, &got), Status::kOk) << client.error();
      EXPECT_TRUE(got == sent) << bytes;
    }
  }
  EXPECT_EQ(put(client, "", "v"), Status::kTooLarge);
  EXPECT_EQ(put(client, std::string(client.most_key() + 1, 'k'), "v"), Status::kTooLarge);
  EXPECT_EQ(put(client, "k", std::string(client.most_value() + 1, 'v')), Status::kTooLarge);
}

TEST_P(ClientTest, has_a_window_and_tells_each_end_once) {
  ClientConfig c = config();
  c.window = 5;
  Client client(c);
  for (uint64_t round = 0; round < 50; ++round) {
    for (uint64_t i = 0; i < 5; ++i) {
      ASSERT_TRUE(round % 2 == 0 ? client.start_put("key" + std::to_string(i), "v", i)
                                 : client.start_get("key" + std::to_string(i), i));
    }
    EXPECT_FALSE(client.start_get("key0", 9));
    EXPECT_EQ(client.under_way(), 5u);
    const auto cookies = cookies_of_all(client);
    EXPECT_EQ(std::set<uint64_t>(cookies.begin(), cookies.end()), (std::set<uint64_t>{0, 1, 2, 3, 4}));
    EXPECT_EQ(cookies.size(), 5u);
  }
}

TEST_P(ClientTest, a_hint_saves_the_index_and_never_brings_an_old_value) {
  Client reader(config()), writer(config(Mode::kWrite));
  std::string value;
  put(writer, "k", "0");
  EXPECT_EQ(get(reader, "k", &value), Status::kOk);
  EXPECT_EQ(reader.counters().hint_hits, 0u);
  EXPECT_EQ(get(reader, "k", &value), Status::kOk);
  EXPECT_EQ(reader.counters().hint_hits, 1u);
  for (int i = 1; i < 100; ++i) {
    put(writer, "k", std::to_string(i));
    EXPECT_EQ(get(reader, "k", &value), Status::kOk);
    EXPECT_EQ(value, std::to_string(i));
  }
  EXPECT_EQ(reader.counters().hint_hits, 1u);
  EXPECT_GT(writer.counters().direct_puts, 90u);
}

TEST_P(ClientTest, of_two_writers_the_later_one_wins) {
  Client one(config(Mode::kWrite)), other(config());
  std::string value;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(put(one, "k", "one" + std::to_string(i)), Status::kOk);
    EXPECT_EQ(put(other, "k", "other" + std::to_string(i)), Status::kOk);
    EXPECT_EQ(get(one, "k", &value), Status::kOk);
    EXPECT_EQ(value, "other" + std::to_string(i));
  }
  // Its hint is from the get, so no race is lost before the next round.
  EXPECT_GT(one.counters().direct_puts, 90u);
  put(one, "k", "a");
  put(other, "k", "b");
  put(one, "k", "c");
  EXPECT_EQ(one.counters().cas_failures, 1u);
  EXPECT_EQ(get(other, "k", &value), Status::kOk);
  EXPECT_EQ(value, "c");
}

// The server's memory is of the same host.
TEST_P(ClientTest, a_put_finds_the_place_of_its_key_by_itself) {
  Client first(config());
  for (int key = 0; key < 20; ++key) put(first, "k" + std::to_string(key), "old");
  Client writer(config(Mode::kWrite));
  put(writer, "k0", "new");  // asks for memory
  ASSERT_EQ(put(writer, "k0", "new"), Status::kOk);
  const uint64_t messages = writer.counters().messages, direct = writer.counters().direct_puts;
  for (int key = 1; key < 20; ++key) ASSERT_EQ(put(writer, "k" + std::to_string(key), "new"), Status::kOk);
  EXPECT_EQ(writer.counters().messages, messages);
  EXPECT_EQ(writer.counters().direct_puts, direct + 19);
  EXPECT_GE(writer.counters().places_read, 19u);
  std::string value;
  for (int key = 0; key < 20; ++key) {
    EXPECT_EQ(get(first, "k" + std::to_string(key), &value), Status::kOk);
    EXPECT_EQ(value, "new");
  }
  EXPECT_EQ(put(writer, "unknown", "v"), Status::kOk);  // what is not there is inserted by the server
  EXPECT_EQ(get(first, "unknown", &value), Status::kOk);
  EXPECT_EQ(value, "v");
}

TEST_P(ClientTest, a_removed_key_does_not_come_back_by_a_hint) {
  Client one(config()), other(config());
  std::string value;
  put(one, "k", "a");
  get(one, "k", &value);
  EXPECT_EQ(remove(other, "k"), Status::kOk);
  EXPECT_EQ(get(one, "k", &value), Status::kNotFound);
  put(one, "k", "b");
  EXPECT_EQ(get(other, "k", &value), Status::kOk);
  EXPECT_EQ(value, "b");
}

// More keys than a reply has room for.
TEST_P(ClientTest, scans_in_the_order_of_keys) {
  Client client(config());
  const auto name = [](int i) { return "user" + std::to_string(1'000'000 + i) + std::string(100, '-'); };
  for (int i = 0; i < 200; ++i) ASSERT_EQ(put(client, name(199 - i), std::to_string(199 - i)), Status::kOk);
  std::vector<std::pair<std::string, std::string>> records;
  EXPECT_EQ(scan(client, "", 1000, &records), Status::kOk);
  ASSERT_EQ(records.size(), 200u);
  for (int i = 0; i < 200; ++i) EXPECT_EQ(records[i], std::make_pair(name(i), std::to_string(i)));
  EXPECT_EQ(scan(client, name(150), 150, &records), Status::kOk);
  ASSERT_EQ(records.size(), 50u);
  EXPECT_EQ(records[0].first, name(150));
  EXPECT_EQ(scan(client, name(3), 70, &records), Status::kOk);
  ASSERT_EQ(records.size(), 70u);
  EXPECT_EQ(records[69].first, name(72));
  EXPECT_EQ(scan(client, "v", 10, &records), Status::kOk);
  EXPECT_TRUE(records.empty());
  EXPECT_EQ(scan(client, "", 0, &records), Status::kOk);
  EXPECT_TRUE(records.empty());
}

TEST_P(ClientTest, many_scans_at_a_time_share_the_window) {
  Client client(config());
  for (int i = 0; i < 300; ++i) put(client, "user" + std::to_string(i), std::string(100, 'v'));
  for (uint64_t i = 0; i < kMostWindow; ++i) ASSERT_TRUE(client.start_scan("user" + std::to_string(i), 100, i));
  EXPECT_EQ(cookies_of_all(client).size(), kMostWindow);
}

TEST_P(ClientTest, finds_keys_in_lines_behind_their_home) {
  ServerConfig crowded;
  crowded.keys = 1;
  start_server(crowded);
  Client client(config());
  for (int i = 0; i < 200; ++i) ASSERT_EQ(put(client, std::to_string(i), std::to_string(i)), Status::kOk);
  for (int i = 0; i < 200; ++i) {
    std::string value;
    ASSERT_EQ(get(client, std::to_string(i), &value), Status::kOk) << i;
    EXPECT_EQ(value, std::to_string(i));
  }
  Client fresh(config());
  std::string value;
  EXPECT_EQ(get(fresh, "199", &value), Status::kOk);
  EXPECT_EQ(get(fresh, "200", &value), Status::kNotFound);
  Status status = Status::kOk;
  for (int i = 200; status == Status::kOk && i < 300; ++i) status = put(client, std::to_string(i), "v");
  EXPECT_EQ(status, Status::kFull);
}

// Whatever it had under way. What it was granted comes back, so that this does not fill the store.
TEST_P(ClientTest, may_go_in_the_middle_of_its_work) {
  const std::string value(100'000, 'v');
  for (int round = 0; round < 20; ++round) {
    Client client(config());
    std::string got;
    get(client, "key1", &got);
    for (uint64_t i = 0; i < 20; ++i) {
      const std::string key = "key" + std::to_string(i % 5);
      ASSERT_TRUE(i % 2 == 0 ? client.start_put(key, value, i) : client.start_get(key, i));
    }
  }
  Client client(config());
  std::string got;
  EXPECT_EQ(put(client, "key1", "last"), Status::kOk);
  EXPECT_EQ(get(client, "key1", &got), Status::kOk);
  EXPECT_EQ(got, "last");
}

TEST_P(ClientTest, fails_with_a_sentence_when_the_server_ends) {
  Client client(config());
  put(client, "k", "v");
  stop_server();
  std::string value;
  EXPECT_EQ(get(client, "k", &value), Status::kFailed);
  EXPECT_EQ(put(client, "k", "v"), Status::kFailed);
  EXPECT_EQ(remove(client, "k"), Status::kFailed);
  std::vector<std::pair<std::string, std::string>> records;
  EXPECT_EQ(scan(client, "", 10, &records), Status::kFailed);
  EXPECT_FALSE(client.error().empty());
}

}  // namespace
}  // namespace ub::kv
