// SPDX-License-Identifier: Apache-2.0
//
// kv_store: a key-value store in the memory of a server, and its operations one by one.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <map>

#include "apps/aperture/memory.h"
#include "apps/kv_store/client.h"
#include "apps/kv_store/greeting.h"
#include "apps/kv_store/server.h"
#include "tools/common/tool_error.h"

namespace {

using namespace ub::kv;
using ub::tools::kExitUsage;
using ub::tools::ToolError;

struct Options {
  std::string device;
  ServerConfig server;
  ClientConfig client;
  std::string key, value, file;
  uint32_t count = 100;
  bool raw = false;
};

void serve(const Options& o) {
  ub::apps::Device device(o.device);
  ServerConfig config = o.server;
  config.context = device.context();
  Server server(config);
  fmt::print("room for {} bytes of records; clients ask on TCP port {}\n", config.memory, server.port());
  std::fflush(stdout);
  server.run({});
}

void check(const Client& client, Status status, const std::string& key) {
  switch (status) {
    case Status::kOk:
      return;
    case Status::kNotFound:
      throw ToolError(fmt::format("there is no key {}", key));
    case Status::kExists:
      throw ToolError(fmt::format("there is a key {} already", key));
    case Status::kFull:
      throw ToolError("the store is full; start its server with more --memory or more --keys");
    case Status::kTooLarge:
      throw ToolError(
          fmt::format("keys have 1 to {} bytes, values at most {}", client.most_key(), client.most_value()));
    case Status::kFailed:
      throw ToolError(ub::tools::kExitPeerLost, client.error());
  }
}

void with_client(const Options& o, const std::function<void(Client&)>& use) {
  ub::apps::Device device(o.device);
  ClientConfig config = o.client;
  config.context = device.context();
  config.window = 1;
  Client client(config);
  use(client);
}

void print_value(const Options& o, std::string_view value) {
  std::fwrite(value.data(), 1, value.size(), stdout);
  if (!o.raw) std::fputc('\n', stdout);
}

std::string value_of(const Options& o) {
  if (o.file.empty()) return o.value;
  if (o.file == "-") return {std::istreambuf_iterator<char>(std::cin), {}};
  std::ifstream file(o.file, std::ios::binary);
  if (!file) throw ToolError(fmt::format("cannot read {}", o.file));
  return {std::istreambuf_iterator<char>(file), {}};
}

void get_one(const Options& o, Client& client) {
  std::string value;
  check(client, get(client, o.key, &value), o.key);
  print_value(o, value);
}

void scan_some(const Options& o, Client& client) {
  std::vector<std::pair<std::string, std::string>> records;
  check(client, scan(client, o.key, o.count, &records), o.key);
  for (const auto& [key, value] : records) fmt::print("{} {}\n", key, value);
}

void print_stat(const Options& o) {
  ub::tools::Peer server(ub::tools::TcpSocket::connect(o.client.host, o.client.port), kProgram, "the server");
  server.send("hello", {{"version", kVersion}, {"wants", "stat"}});
  const ub::tools::Json stat = server.expect("stat", kGreetingMs);
  for (const char* name : {"keys", "memory", "free", "granted", "sweeps", "clients"}) {
    fmt::print("{:8} {}\n", name, stat.value(name, uint64_t{0}));
  }
}

// ---- command line ---------------------------------------------------------------------------------------------

void add_device(CLI::App* command, Options& o) {
  command->add_option("-d,--device", o.device, "device name; default: the first one");
}

CLI::App* add_client(CLI::App& app, const std::string& name, const std::string& what, Options& o) {
  CLI::App* command = app.add_subcommand(name, what);
  command->add_option("server", o.client.host, "host where the server runs")->required();
  command->add_option("-p,--port", o.client.port, "TCP port of the server")
      ->check(CLI::Range(1, 65535))
      ->capture_default_str();
  return command;
}

CLI::App* add_operation(CLI::App& app, const std::string& name, const std::string& what, Options& o) {
  CLI::App* command = add_client(app, name, what, o);
  static const std::map<std::string, Mode> kModes = {
      {"read", Mode::kRead}, {"write", Mode::kWrite}, {"load", Mode::kLoad}};
  command
      ->add_option_function<std::string>(
          "--mode", [&o](const std::string& mode) { o.client.mode = kModes.at(mode); },
          "how it reaches the server's memory: by READs, also by WRITEs, or by loads")
      ->check(CLI::IsMember({"read", "write", "load"}))
      ->default_str("read");
  add_device(command, o);
  return command;
}

void add_serve(CLI::App& app, Options& o) {
  CLI::App* command = app.add_subcommand("serve", "hold the store, until Ctrl-C");
  command->add_option("-p,--port", o.server.port, "TCP port; 0: any free one")->capture_default_str();
  command->add_option("-m,--memory", o.server.memory, "bytes for records, also 64m, 2g; default 256m")
      ->transform(CLI::AsSizeValue(false));
  command->add_option("--keys", o.server.keys, "so many keys are expected; the index has room for more")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 32))
      ->capture_default_str();
  command->add_option("--value-limit", o.server.most_value, "bytes of the longest value, also 64k; default 1m")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(uint64_t{1}, kMostValue));
  command->add_option("--receives", o.server.receives, "messages that may wait for the server at a time")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command->add_option("--spin", o.server.spin_us, "microseconds without a message after which the server sleeps")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  add_device(command, o);
  command->callback([&o] { serve(o); });
}

void add_commands(CLI::App& app, Options& o) {
  add_serve(app, o);
  auto* get_command = add_operation(app, "get", "print the value of a key", o);
  get_command->add_option("key", o.key)->required();
  get_command->add_flag("--raw", o.raw, "print the bytes of the value and nothing behind them");
  get_command->callback([&o] { with_client(o, [&](Client& client) { get_one(o, client); }); });

  auto* put_command = add_operation(app, "put", "give a key a value", o);
  put_command->add_option("key", o.key)->required();
  auto* value = put_command->add_option("value", o.value);
  auto* file = put_command->add_option("-f,--file", o.file, "the value is in this file; -: on standard input");
  value->excludes(file);
  put_command->callback([=, &o] {
    if (value->empty() && file->empty()) throw CLI::RequiredError("value, or --file,");
    with_client(o, [&](Client& client) { check(client, put(client, o.key, value_of(o)), o.key); });
  });

  auto* delete_command = add_operation(app, "delete", "remove a key", o);
  delete_command->add_option("key", o.key)->required();
  delete_command->callback(
      [&o] { with_client(o, [&](Client& client) { check(client, remove(client, o.key), o.key); }); });

  auto* scan_command = add_operation(app, "scan", "print keys and values in the order of keys", o);
  scan_command->add_option("first", o.key, "begins with the first key that is not before this one");
  scan_command->add_option("-n,--count", o.count, "so many at most")->capture_default_str();
  scan_command->callback([&o] { with_client(o, [&](Client& client) { scan_some(o, client); }); });

  add_client(app, "stat", "print what the server holds", o)->callback([&o] { print_stat(o); });
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app("kv_store - a key-value store in the memory of a server, which clients reach by READ, WRITE and loads",
               "kv_store");
  app.set_version_flag("--version", std::string("kv_store ") + UB_VERSION);
  app.footer(R"(Examples:
  kv_store serve --memory 1g                   the server
  kv_store put localhost apple red
  kv_store get localhost apple
  kv_store put localhost image --file a.png    values may have any bytes, keys too
  kv_store scan localhost a -n 10              ten keys from a on
  kv_store get localhost apple --mode load     by loads instead of READs
The server works for any number of clients at a time. What it holds ends with it.
Exit codes: 0 good, 1 failed or no such key, 2 wrong usage, 3 server lost, 130 interrupted.)");
  app.require_subcommand(1);
  add_commands(app, o);
  ub::tools::install_stop_handler();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : kExitUsage;
  } catch (const std::exception& e) {
    fmt::print(stderr, "kv_store: {}\n", e.what());
    return ub::tools::exit_code_of(e);
  }
  return 0;
}
