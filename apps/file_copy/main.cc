// SPDX-License-Identifier: Apache-2.0
//
// file_copy: a file from one host to another, by RDMA WRITE into the receiver's memory.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>

#include "apps/file_copy/transfer.h"
#include "tools/common/tool_error.h"

namespace {

// "host", "host:port", "[v6]", "[v6]:port"; a bare IPv6 address has more than one colon.
bool split_host(const std::string& text, std::string* host, uint16_t* port) {
  std::string number;
  if (!text.empty() && text.front() == '[') {
    const size_t end = text.find(']');
    if (end == std::string::npos) return false;
    *host = text.substr(1, end - 1);
    const std::string rest = text.substr(end + 1);
    if (!rest.empty() && rest.front() != ':') return false;
    number = rest.empty() ? "" : rest.substr(1);
    if (rest == ":") return false;
  } else if (const size_t colon = text.find(':');
             colon != std::string::npos && text.find(':', colon + 1) == std::string::npos) {
    *host = text.substr(0, colon);
    number = text.substr(colon + 1);
    if (number.empty()) return false;
  } else {
    *host = text;
  }
  if (host->empty()) return false;
  if (number.empty()) return true;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), *port);
  return error == std::errc() && end == number.data() + number.size() && *port != 0;
}

void add_timeout(CLI::App* command, uint32_t* seconds, const std::string& whom) {
  command->add_option("--timeout", *seconds, "seconds without progress of " + whom + " after which the copy fails")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
}

}  // namespace

int main(int argc, char** argv) {
  using namespace ub::apps;
  SendOptions send;
  ReceiveOptions receive;
  std::string destination;
  CLI::App app("file_copy - copies a file by RDMA WRITE into the receiver's memory, and from there into its file",
               "file_copy");
  app.set_version_flag("--version", std::string("file_copy ") + UB_VERSION);
  app.footer(R"(Examples:
  file_copy receive --dir /tmp/in              takes files until Ctrl-C
  file_copy receive --once                     takes one, and ends with its exit code
  file_copy send big.iso other-host            copies big.iso there
  file_copy send big.iso other-host:7000 --name copy.iso --iobuf 4m --inflight 16
A receiver serves one sender after the other; those who come meanwhile wait. An unfinished file is called
.NAME.<random>.part; it is removed when the copy fails.
Exit codes: 0 good, 1 failed, 2 wrong usage, 3 peer lost, 4 wrong data, 130 interrupted.)");
  app.require_subcommand(1);

  auto* s = app.add_subcommand("send", "send one file");
  s->add_option("file", send.file)->required();
  s->add_option("host", destination, "receiver: host or host:port")->required();
  s->add_option("--name", send.name, "its name there; default: its name here");
  s->add_option("--port", send.port, "TCP port of the receiver")->check(CLI::Range(1, 65535))->capture_default_str();
  s->add_option("--iobuf", send.iobuf, "bytes of one WRITE, also 64k, 4m; default 1m")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(uint64_t{4096}, kMaxChunk));
  s->add_option("--inflight", send.inflight, "WRITEs at a time")->check(CLI::Range(1, 1024))->capture_default_str();
  add_timeout(s, &send.timeout_s, "the receiver");

  auto* r = app.add_subcommand("receive", "receive files");
  r->add_option("--dir", receive.directory, "where to put them")->capture_default_str();
  r->add_option("--port", receive.port, "TCP port; 0: any free one")->capture_default_str();
  r->add_flag("--once", receive.once, "end after one file");
  r->add_flag("--overwrite", receive.overwrite, "replace files that exist");
  r->add_flag("--sync", receive.sync, "wait until the file is on the disk");
  add_timeout(r, &receive.timeout_s, "the sender");
  s->add_option("-d,--device", send.device, "device name; default: the first one");
  r->add_option("-d,--device", receive.device, "device name; default: the first one");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  ub::tools::install_stop_handler();
  try {
    if (r->parsed()) return receive_files(receive);
    if (!split_host(destination, &send.host, &send.port)) {
      fmt::print(stderr, "file_copy: {} is not host or host:port\n", destination);
      return 2;
    }
    return send_file(send);
  } catch (const std::exception& e) {
    fmt::print(stderr, "file_copy: {}\n", e.what());
    return ub::tools::exit_code_of(e);
  }
}
