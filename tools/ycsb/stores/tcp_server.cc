// SPDX-License-Identifier: Apache-2.0
#include "tools/ycsb/stores/tcp_server.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <future>
#include <vector>

#include "tools/common/tool_error.h"
#include "tools/ycsb/stores/record_map.h"
#include "tools/ycsb/stores/tcp_protocol.h"

namespace ub::ycsb {
namespace {

using tools::ToolError;

constexpr uint64_t kLongWaitNs = 10'000'000;

Status execute(RecordMap& map, const RequestHead& head, std::string_view key, std::string_view record,
               std::string* found) {
  const RecordFormat format(head.one_field ? 1 : 2);
  bool exists = true;
  switch (head.operation) {
    case Operation::kRead:
      exists = map.read(key, head.read_field, format, found);
      break;
    case Operation::kInsert:
      map.insert(key, record);
      break;
    case Operation::kUpdate:
      exists = map.update(key, record, format);
      break;
    case Operation::kScan:
      map.scan(key, head.scan_length, [&](std::string_view each) { map.read(each, head.read_field, format, found); });
      break;
    default:
      return Status::kFailed;
  }
  return exists ? Status::kOk : Status::kNotFound;
}

// Answers the first request of those that came. False: it is not complete.
bool answer_one(RecordMap& map, ByteStream& stream) {
  const std::string_view in = stream.in();
  RequestHead head;
  if (in.size() < sizeof head) return false;
  std::memcpy(&head, in.data(), sizeof head);
  if (head.record_bytes > kMostRecordBytes) throw ToolError("a client speaks another protocol: is its port right?");
  const size_t size = sizeof head + head.key_bytes + head.record_bytes;
  if (in.size() < size) return false;

  std::string& out = stream.out();
  const size_t begin = out.size();
  out.resize(begin + sizeof(AnswerHead));
  const std::string_view key = in.substr(sizeof head, head.key_bytes);
  const Status status = execute(map, head, key, in.substr(sizeof head + head.key_bytes, head.record_bytes), &out);
  const AnswerHead answer = {static_cast<uint32_t>(out.size() - begin - sizeof answer), status, {}};
  std::memcpy(out.data() + begin, &answer, sizeof answer);
  stream.consume(size);
  return true;
}

// Until the client closes, or all are to stop.
void serve_connection(RecordMap& map, tools::TcpSocket socket, Wait wait, const std::atomic<bool>& stop) {
  const std::string client = socket.peer_address();
  try {
    ByteStream stream(std::move(socket), wait);
    while (!stop) {
      stream.exchange(kLongWaitNs);
      while (answer_one(map, stream)) continue;
    }
  } catch (const ToolError& e) {
    if (e.code() != tools::kExitPeerLost) fmt::print(stderr, "urma_ycsb: {}: {}\n", client, e.what());
  }
}

bool has_ended(const std::future<void>& connection) {
  return connection.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

}  // namespace

void serve_tcp(uint16_t port, Wait wait) {
  RecordMap map(true);
  tools::TcpListener listener(port);
  fmt::print("serving on TCP port {}\n", listener.port());
  std::fflush(stdout);
  std::atomic<bool> stop{false};
  std::vector<std::future<void>> connections;  // their destructors wait for them
  try {
    for (;;) {
      tools::TcpSocket socket = listener.accept();
      std::erase_if(connections, has_ended);
      connections.push_back(
          std::async(std::launch::async, serve_connection, std::ref(map), std::move(socket), wait, std::cref(stop)));
    }
  } catch (const ToolError& e) {
    stop = true;
    if (e.code() != tools::kExitInterrupted) throw;
  }
}

}  // namespace ub::ycsb
