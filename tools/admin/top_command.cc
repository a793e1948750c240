// SPDX-License-Identifier: Apache-2.0
//
// `urma_admin top`: what instances do at the moment.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <optional>

#include "tools/admin/commands.h"
#include "tools/admin/instance_pages.h"
#include "tools/admin/instance_rates.h"
#include "tools/admin/terminal.h"
#include "tools/admin/top_page.h"
#include "tools/common/tool_error.h"

namespace ub::tools {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kFirstSeconds = 0.5;  // until the first rates, since a page without any says little
constexpr double kLeastPatience = 0.5;

class Top {
 public:
  Top(std::string directory, std::string wanted, double interval_s)
      : wanted_(std::move(wanted)), patience_s_(std::max(interval_s, kLeastPatience)) {
    view_.directory = std::move(directory);
    view_.interval_s = interval_s;
  }

  // False: the wanted instance is not there.
  bool look() {
    size_t unreadable = 0;
    std::vector<Instance> instances = load_instances(view_.directory, &unreadable);
    if (!wanted_.empty()) std::erase_if(instances, [&](const Instance& i) { return !matches(i, wanted_); });
    rates_.take(std::move(instances), wall_ns(), patience_s_);
    view_.clock = fmt::format("{:%H:%M:%S}", fmt::localtime(std::time(nullptr)));
    return wanted_.empty() || !rates_.instances().empty();
  }

  int print_once() {
    usleep(static_cast<useconds_t>(view_.interval_s * 1e6));
    look();
    size_t most_scroll = 0;
    for (const TopLine& line : top_page(rates_.instances(), view_, &most_scroll)) fmt::print("{}\n", line.text);
    return rates_.instances().empty() ? 1 : 0;
  }

  int run() {
    Terminal terminal;
    view_.has_keys = true;
    auto next = Clock::now() + seconds(std::min(view_.interval_s, kFirstSeconds));
    while (!stop_requested && draw(&terminal)) {
      const double left = std::chrono::duration<double>(next - Clock::now()).count();
      if (left <= 0) {
        if (!view_.is_paused) look();
        next = Clock::now() + seconds(view_.interval_s);
        continue;
      }
      const Key key = terminal.wait(left);
      if (key == Key::kQuit) break;
      obey(key, terminal.size().height);
    }
    return 0;
  }

 private:
  static Clock::duration seconds(double s) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(s));
  }

  bool draw(Terminal* terminal) {
    const auto [width, height] = terminal->size();
    view_.width = width, view_.height = height;
    const std::vector<TopLine> lines = top_page(rates_.instances(), view_, &most_scroll_);
    view_.scroll = std::min(view_.scroll, most_scroll_);
    std::string screen = "\x1b[H";
    for (size_t i = 0; i < std::min(lines.size(), height); ++i) {
      if (i != 0) screen += "\r\n";
      screen += lines[i].is_head ? fmt::format("\x1b[7m{:<{}}\x1b[0m", lines[i].text, width) : lines[i].text + "\x1b[K";
    }
    return terminal->draw(screen + "\x1b[J");
  }

  void obey(Key key, size_t height) {
    const size_t page = std::max<size_t>(height / 2, 1);
    switch (key) {
      case Key::kSort:
        view_.sort = next_sort(view_.sort);
        break;
      case Key::kPause:
        view_.is_paused = !view_.is_paused;
        break;
      case Key::kUp:
        view_.scroll -= std::min<size_t>(view_.scroll, 1);
        break;
      case Key::kDown:
        view_.scroll = std::min(view_.scroll + 1, most_scroll_);
        break;
      case Key::kPageUp:
        view_.scroll -= std::min(view_.scroll, page);
        break;
      case Key::kPageDown:
        view_.scroll = std::min(view_.scroll + page, most_scroll_);
        break;
      case Key::kTop:
        view_.scroll = 0;
        break;
      default:
        break;
    }
  }

  std::string wanted_;
  double patience_s_;
  InstanceRates rates_;
  TopView view_;
  size_t most_scroll_ = 0;
};

}  // namespace

int show_top(const InstanceSelection& selection, const TopOptions& o) {
  const auto directory = directory_of(selection);
  if (!directory) return 1;
  if (const std::string problem = directory_problem(*directory); !problem.empty()) {
    fmt::print(stderr, "urma_admin: {}\n", problem);
    return 1;
  }
  Top top(*directory, selection.instance, o.interval_s);
  if (!top.look()) {
    fmt::print(stderr, "urma_admin: no instance {} in {}; urma_admin list has those that run\n", selection.instance,
               *directory);
    return 1;
  }
  return o.once || isatty(STDOUT_FILENO) == 0 ? top.print_once() : top.run();
}

}  // namespace ub::tools
