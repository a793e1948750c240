// SPDX-License-Identifier: Apache-2.0
//
// The terminal of a page that is renewed: keys without Enter, a screen of its own, no cursor. All is as before when the
// object ends. Needs stop_requested (tools/common/tool_error.h): signals that end the program are held back but while
// it waits for keys, so that none ends it with the terminal changed.
#pragma once

#include <signal.h>
#include <termios.h>

#include <string>

namespace ub::tools {

enum class Key { kNone, kQuit, kSort, kPause, kUp, kDown, kPageUp, kPageDown, kTop };

class Terminal {
 public:
  Terminal();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  struct Size {
    size_t width, height;
  };
  Size size() const;

  // A key, or kNone: the time is over, the size has changed, or the program is asked to end.
  Key wait(double seconds);
  // The whole screen. False: the terminal is gone.
  bool draw(const std::string& text);

 private:
  bool has_keys_ = false;  // stdin is a terminal, too
  termios saved_{};
  sigset_t saved_signals_{};
};

}  // namespace ub::tools
