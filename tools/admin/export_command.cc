// SPDX-License-Identifier: Apache-2.0
//
// `urma_admin export`: the statistics of all instances for Prometheus, by HTTP or once as text.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <prometheus/text_serializer.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>

#include "tools/admin/commands.h"
#include "tools/admin/instance_pages.h"
#include "tools/admin/stats_metrics.h"

namespace ub::tools {
namespace {

// Reads all pages at each scrape. Thread: any number of them.
class Pages : public prometheus::Collectable {
 public:
  Pages(std::string directory, size_t most_channels)
      : directory_(std::move(directory)), most_channels_(most_channels) {}

  std::vector<prometheus::MetricFamily> Collect() const override {
    size_t unreadable = 0;
    const std::vector<Instance> instances = load_instances(directory_, &unreadable);
    return metrics_of(instances, unreadable, most_channels_);
  }

 private:
  std::string directory_;
  size_t most_channels_;
};

int print_page(const Pages& pages) {
  const std::string page = prometheus::TextSerializer().Serialize(pages.Collect());
  if (std::fwrite(page.data(), 1, page.size(), stdout) == page.size() && std::fflush(stdout) == 0) return 0;
  fmt::print(stderr, "urma_admin: cannot write the page: {}\n", std::strerror(errno));
  return 1;
}

bool is_v6(const ExportOptions& o) { return o.bind.find(':') != std::string::npos; }

// "127.0.0.1:9464", "[::1]:9464".
std::string listening_address(const ExportOptions& o, int port) {
  return is_v6(o) ? fmt::format("[{}]:{}", o.bind, port) : fmt::format("{}:{}", o.bind, port);
}

// Why nobody can listen there, as far as the kernel says. The web server does not tell.
int bind_error(const ExportOptions& o) {
  sockaddr_storage address{};
  socklen_t size = sizeof(sockaddr_in);
  if (is_v6(o)) {
    auto& v6 = reinterpret_cast<sockaddr_in6&>(address);
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(o.port);
    inet_pton(AF_INET6, o.bind.c_str(), &v6.sin6_addr);
    size = sizeof v6;
  } else {
    auto& v4 = reinterpret_cast<sockaddr_in&>(address);
    v4.sin_family = AF_INET;
    v4.sin_port = htons(o.port);
    inet_pton(AF_INET, o.bind.c_str(), &v4.sin_addr);
  }
  const int fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  const int one = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  const int error = bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 && listen(fd, 1) == 0 ? 0 : errno;
  close(fd);
  return error;
}

const char* what_to_do(int error) {
  switch (error) {
    case EADDRINUSE:
      return "another program has this port: choose another one with --port, or end that program (ss -ltnp names it)";
    case EADDRNOTAVAIL:
      return "no interface of this host has this address: choose another one with --bind";
    case EACCES:
      return "ports below 1024 are for root: choose another one with --port";
    default:
      return "choose another address with --bind, or another port with --port";
  }
}

int cannot_listen(const ExportOptions& o, const std::exception& e) {
  const int error = bind_error(o);
  fmt::print(stderr, "urma_admin: cannot listen on {}: {}; {}\n", listening_address(o, o.port),
             error == 0 ? e.what() : std::strerror(error), what_to_do(error));
  return 1;
}

}  // namespace

int export_metrics(const InstanceSelection& selection, const ExportOptions& o) {
  const auto directory = directory_of(selection);
  if (!directory) return 1;
  if (const std::string problem = directory_problem(*directory); !problem.empty()) {
    fmt::print(stderr, "urma_admin: {}\n", problem);
    return 1;
  }
  const auto pages = std::make_shared<Pages>(*directory, o.channels);
  if (o.once) return print_page(*pages);

  // The threads of the server inherit that these signals are blocked, so that they end the wait below and nothing else.
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  std::unique_ptr<prometheus::Exposer> server;
  try {
    server = std::make_unique<prometheus::Exposer>(listening_address(o, o.port));
  } catch (const std::exception& e) {
    return cannot_listen(o, e);
  }
  server->RegisterCollectable(pages);
  fmt::print("http://{}/metrics has the instances in {}, until Ctrl-C\n",
             listening_address(o, server->GetListeningPorts().at(0)), *directory);
  std::fflush(stdout);
  int signal = 0;
  sigwait(&ends, &signal);
  return 0;
}

bool is_ip_address(const std::string& text) {
  in6_addr address;
  return inet_pton(AF_INET, text.c_str(), &address) == 1 || inet_pton(AF_INET6, text.c_str(), &address) == 1;
}

}  // namespace ub::tools
