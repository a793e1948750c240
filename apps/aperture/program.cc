// SPDX-License-Identifier: Apache-2.0
#include "apps/aperture/program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <memory>

#include "tools/common/tool_error.h"

namespace ub::apps {

using tools::kExitFailed;
using tools::kExitPeerLost;
using tools::kExitUsage;

namespace {

constexpr const char* kExitCodes =
    "\nStart the server first; it works for any number of clients, until Ctrl-C. --loopback needs no server.\n"
    "Exit codes: 0 good, 1 failed, 2 wrong usage, 3 server lost, 4 wrong data, 130 interrupted.";

struct Options {
  std::string server;  // empty: be one
  bool loopback = false;
  std::string device;
  uint16_t port = 0;
  uint64_t bytes = 0;
};

void add_common(CLI::App& app, Options& o) {
  auto* server = app.add_option("server", o.server, "where the server runs; none: be the server");
  app.add_flag("--loopback", o.loopback, "be both in one process")->excludes(server);
  app.add_option("-p,--port", o.port, "TCP port of the server; 0: it takes any")->capture_default_str();
  app.add_option("-m,--memory", o.bytes, "bytes that the server offers, also 64k, 1m, 2g")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(uint64_t{4096}, uint64_t{1} << 40))
      ->default_str(std::to_string(o.bytes));
  app.add_option("-d,--device", o.device, "device name; default: the first one");
}

void run(const Program& program, const Options& o) {
  Device device(o.device);
  std::unique_ptr<OfferedMemory> offered;
  if (o.server.empty()) offered = std::make_unique<OfferedMemory>(device, o.bytes);
  if (offered && !o.loopback) answer_clients(program.name, o.port, *offered);
  const Place place = offered ? offered->place() : ask_server(program.name, o.server, o.port);
  ImportedMemory memory(device, place);
  program.run({device, memory, place});
}

// Of the process, for the handler of a fault, which may not allocate.
std::string& own_name() {
  static std::string name;
  return name;
}

void say(const std::string& text) {
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}
void say(const char* text) { [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, std::strlen(text)); }

bool end_program(const softub_fault_t* fault, void*) {
  const bool lost = fault->cause == URMA_CR_ACK_TIMEOUT_ERR;
  say(own_name());
  say(lost                            ? ": the server is gone or does not answer\n"
      : fault->instruction != nullptr ? ": an instruction that uncached windows do not know: "
                                      : ": the server's memory refuses an access\n");
  if (fault->instruction != nullptr) {
    say(fault->instruction);
    say("\n");
  }
  ::_exit(lost ? kExitPeerLost : kExitFailed);
}

int report(const std::exception& e) {
  fmt::print(stderr, "{}: {}\n", own_name(), e.what());
  if (const auto* access = dynamic_cast<const softub::far_error*>(&e)) {
    return access->status() == URMA_CR_ACK_TIMEOUT_ERR ? kExitPeerLost : kExitFailed;
  }
  return tools::exit_code_of(e);
}

}  // namespace

void end_on_fault(softub::far_window& window) { window.on_fault(end_program, nullptr); }

int run_program(const Program& program, int argc, char** argv) {
  Options options;
  options.port = program.port;
  options.bytes = program.bytes;
  own_name() = program.name;
  CLI::App app(program.name + " - " + program.purpose, program.name);
  app.set_version_flag("--version", program.name + " " + UB_VERSION);
  app.footer(program.footer + kExitCodes);
  add_common(app, options);
  program.add_options(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : kExitUsage;
  }
  tools::install_stop_handler();
  try {
    run(program, options);
    return 0;
  } catch (const std::exception& e) {
    return report(e);
  }
}

}  // namespace ub::apps
