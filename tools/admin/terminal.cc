// SPDX-License-Identifier: Apache-2.0
#include "tools/admin/terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <string_view>

#include "tools/common/tool_error.h"

namespace ub::tools {
namespace {

constexpr char kEnter[] = "\x1b[?1049h\x1b[?25l";  // the other screen, no cursor
constexpr char kLeave[] = "\x1b[?25h\x1b[?1049l";

bool write_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(STDOUT_FILENO, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    text.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

Key key_of(std::string_view bytes) {
  constexpr struct {
    std::string_view bytes;
    Key key;
  } kKeys[] = {{"q", Key::kQuit},      {"s", Key::kSort},         {"p", Key::kPause},          {"k", Key::kUp},
               {"j", Key::kDown},      {"\x1b[A", Key::kUp},      {"\x1b[B", Key::kDown},      {"\x1bOA", Key::kUp},
               {"\x1bOB", Key::kDown}, {"\x1b[5~", Key::kPageUp}, {"\x1b[6~", Key::kPageDown}, {"g", Key::kTop},
               {"\x1b[H", Key::kTop}};
  for (const auto& k : kKeys) {
    if (bytes.starts_with(k.bytes)) return k.key;
  }
  return Key::kNone;
}

}  // namespace

Terminal::Terminal() {
  install_stop_handler();
  struct sigaction resized = {};
  resized.sa_handler = [](int) {};  // that it comes ends the wait
  sigaction(SIGWINCH, &resized, nullptr);
  sigset_t held;
  sigemptyset(&held);
  for (const int s : {SIGINT, SIGTERM, SIGHUP, SIGWINCH}) sigaddset(&held, s);
  pthread_sigmask(SIG_BLOCK, &held, &saved_signals_);

  has_keys_ = tcgetattr(STDIN_FILENO, &saved_) == 0;
  if (has_keys_) {
    termios raw = saved_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    for (const int key : {VSUSP, VQUIT}) raw.c_cc[key] = _POSIX_VDISABLE;  // they would leave the terminal as it is now
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  }
  write_all(kEnter);
}

Terminal::~Terminal() {
  write_all(kLeave);
  if (has_keys_) tcsetattr(STDIN_FILENO, TCSAFLUSH, &saved_);
  pthread_sigmask(SIG_SETMASK, &saved_signals_, nullptr);
}

Terminal::Size Terminal::size() const {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {80, 24};
  return {size.ws_col, size.ws_row};
}

Key Terminal::wait(double seconds) {
  sigset_t open = saved_signals_;
  for (const int s : {SIGINT, SIGTERM, SIGHUP, SIGWINCH}) sigdelset(&open, s);
  const double whole = std::floor(seconds);
  const timespec time = {static_cast<time_t>(whole), static_cast<long>((seconds - whole) * 1e9)};
  pollfd keys = {has_keys_ ? STDIN_FILENO : -1, POLLIN, 0};
  if (ppoll(&keys, 1, &time, &open) <= 0) return Key::kNone;
  char bytes[16];
  const ssize_t n = read(STDIN_FILENO, bytes, sizeof bytes);
  return n <= 0 ? Key::kQuit : key_of({bytes, static_cast<size_t>(n)});
}

bool Terminal::draw(const std::string& text) { return write_all(text); }

}  // namespace ub::tools
