// SPDX-License-Identifier: Apache-2.0
//
// The server of kv_store: a Store, a queue that takes messages of clients, and a TCP port where they introduce
// themselves. Each client gets a queue for what it is answered, so that one who does not take its replies delays nobody
// else, and a registration of the memory. Both end with it. READs, WRITEs and loads of clients need nothing of the
// server's thread.
//
// Thread: one. The constructor throws tools::ToolError with a sentence: no memory, the port is taken, and so on. What
// goes wrong with a client ends that client alone, and is said on stderr.
#pragma once

#include <urma_api.h>

#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "apps/kv_store/client.h"
#include "apps/kv_store/messages.h"
#include "apps/kv_store/objects.h"
#include "apps/kv_store/store.h"
#include "tools/common/tcp_socket.h"

namespace ub::kv {

struct ServerConfig {
  urma_context_t* context = nullptr;  // of an open device; stays open until the server is gone
  uint16_t port = kDefaultPort;       // TCP; 0: any free one
  uint64_t memory = 256 << 20;        // bytes for records
  uint64_t keys = 1 << 20;            // that are expected: more find room, too, but cost clients longer READs
  uint32_t most_value = 1 << 20;      // bytes
  uint32_t receives = 256;            // messages that may arrive before the server looks
  uint32_t spin_us = 50;              // looks so long for the next message before it sleeps
};

// The longest value that a server can be configured for.
constexpr uint64_t kMostValue = uint64_t{Word::kMostUnits} * kUnit - sizeof(RecordHead) - kMostKey;

class Server {
 public:
  explicit Server(const ServerConfig&);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  uint16_t port() const { return listener_.port(); }
  // Until somebody asks it to stop; ToolError on Ctrl-C.
  void run(std::stop_token);

 private:
  struct Session;

  size_t serve();
  void on_reply_sent(const urma_cr_t&);
  void look_at_connections(int timeout_ms);
  void accept_client();
  void greet(Session&);
  void answer(Session&, uint32_t buffer, uint32_t bytes);
  void answer_change(Session&, const Request&, std::string_view key, std::string_view value);
  void answer_scan(Session&, const Request&, std::string_view first);
  void answer_grant(Session&, const Request&);
  void touch(Extent);
  void reply(Session&, const Reply&);
  void reply_long(Session&, const Reply&, std::string_view content);
  void end(Session&, const std::string& why);
  void remove_ended();
  Session* find_session(auto is_it);
  void post_receives(std::span<const uint32_t> buffers);  // a batch of completions at most

  const ServerConfig config_;
  const Geometry geometry_;
  const uint32_t message_bytes_;
  const urma_token_t token_;
  Memory memory_, messages_;
  Segment messages_segment_;
  Store store_;
  Jfce jfce_;
  Jfc jfc_;
  Jfr jfr_;
  Jetty jetty_;  // takes the messages of all clients
  tools::TcpListener listener_;
  int epoll_ = -1;
  std::vector<std::unique_ptr<Session>> sessions_;
  uint32_t sessions_made_ = 0;
  uint64_t touched_ = 0;  // bytes of the memory from its beginning, whose pages were granted
};

}  // namespace ub::kv
