// SPDX-License-Identifier: Apache-2.0
//
// softubd: NICs that serve many applications. See docs/daemon.md.
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "dataplane/config.h"
#include "dataplane/softubd/nic_server.h"

namespace {

using namespace ub;

// The configuration of one NIC: files and variables as for an application, with `file` as the last file if given.
ConfigResult config_from(const std::string& file) {
  if (file.empty()) return load_config();
  setenv("SOFTUB_CONFIG", file.c_str(), 1);
  ConfigResult loaded = load_config();
  const std::string prefix = "env SOFTUB_CONFIG: ";
  if (loaded.error.starts_with(prefix)) loaded.error = "argument " + loaded.error.substr(prefix.size());
  return loaded;
}

class Softubd {
 public:
  explicit Softubd(std::vector<std::string> files) : files_(std::move(files)), signals_(io_) {
    if (files_.empty()) files_.emplace_back();
  }

  bool start() {
    for (const std::string& file : files_) {
      ConfigResult loaded = config_from(file);
      if (!loaded.config) return complain(loaded.error);
      spdlog::set_level(spdlog::level::from_str(loaded.config->daemon.log_level));
      std::string error;
      std::unique_ptr<NicServer> server = NicServer::start(io_, *loaded.config, &error);
      if (server == nullptr) return complain(file.empty() ? error : file + ": " + error);
      spdlog::info("serving {} at {}, uasid 0x{:08x}", loaded.config->device.name, server->socket_path(),
                   server->nic().uasid());
      servers_.push_back(std::move(server));
    }
    for (int signal : {SIGINT, SIGTERM, SIGHUP}) signals_.add(signal);
    wait_for_signal();
    return true;
  }

  void run() {
    io_.run();
    servers_.clear();
    spdlog::info("stopped");
  }

 private:
  static bool complain(const std::string& error) {
    spdlog::error("{}", error);
    return false;
  }

  void wait_for_signal() {
    signals_.async_wait([this](const boost::system::error_code& failed, int signal) {
      if (failed) return;
      if (signal == SIGHUP) {
        reload();
        return wait_for_signal();
      }
      spdlog::info("stopping on signal {}", signal);
      std::signal(SIGINT, SIG_DFL);
      std::signal(SIGTERM, SIG_DFL);
      io_.stop();
    });
  }

  // What is wrong in the new configuration changes nothing.
  void reload() {
    for (size_t i = 0; i < servers_.size(); ++i) {
      ConfigResult loaded = config_from(files_[i]);
      if (!loaded.config) {
        spdlog::error("configuration not taken over: {}", loaded.error);
        continue;
      }
      spdlog::set_level(spdlog::level::from_str(loaded.config->daemon.log_level));
      const std::string others = servers_[i]->reload(*loaded.config);
      spdlog::info("configuration of {} taken over", servers_[i]->socket_path());
      if (!others.empty()) spdlog::warn("needs a restart to change: {}", others);
    }
  }

  std::vector<std::string> files_;
  boost::asio::io_context io_;
  boost::asio::signal_set signals_;
  std::vector<std::unique_ptr<NicServer>> servers_;
};

// Every application costs four descriptors.
void raise_descriptor_limit() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("softubd: a software NIC of the Unified Bus that serves many applications");
  std::vector<std::string> files;
  app.add_option("FILE", files, "Configuration, one file for each NIC; none: the usual files and variables");
  app.set_version_flag("--version", std::string("softubd ") + UB_VERSION);
  app.footer(
      "Examples:\n"
      "  softubd                    a NIC by the usual files and variables\n"
      "  softubd a.toml b.toml      two NICs; each file has a daemon.socket of its own\n"
      "  SOFTUB_PLACEMENT_MODE=daemon urma_pingpong     a program that uses it\n"
      "Settings: urma_admin config, section daemon. SIGHUP reads the configuration again, SIGTERM stops.\n"
      "Exit codes: 0 stopped by a signal, 1 failed, 2 wrong usage.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? EXIT_SUCCESS : 2;
  }
  spdlog::set_default_logger(spdlog::stderr_logger_mt("softubd"));
  spdlog::set_pattern("%Y-%m-%d %H:%M:%S.%e %l: %v");
  raise_descriptor_limit();
  Softubd daemon(std::move(files));
  if (!daemon.start()) return EXIT_FAILURE;
  daemon.run();
  return EXIT_SUCCESS;
}
