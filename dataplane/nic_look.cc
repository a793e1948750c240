// SPDX-License-Identifier: Apache-2.0
//
// What tools ask a NIC for while it runs (look_door.h), on its own thread:
//
//   trace add N [FILTER]   trace show [FROM]   trace status   trace stop   trace clear
#include <algorithm>
#include <charconv>
#include <new>
#include <string_view>

#include "dataplane/nic.h"

namespace ub {
namespace {

constexpr std::string_view kKnown =
    "requests are: trace add N [FILTER], trace show [FROM], trace status, trace stop, trace clear";

// Takes the first word off the text.
std::string_view take_word(std::string_view* text) {
  const size_t end = std::min(text->find(' '), text->size());
  const std::string_view word = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  return word;
}

bool read_number(std::string_view word, uint64_t* number) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), *number);
  return error == std::errc{} && end == word.data() + word.size();
}

}  // namespace

void Nic::open_look_door() {
  if (statistics_ == nullptr) return;
  std::string error;  // an instance can live without
  if (!look_door_.open(LookDoor::path_beside(statistics_->path()), &error)) return;
  wakers_.watch(look_door_.fd(), Waker::kOthers);
  away_wakers_.watch(look_door_.fd(), Waker::kOthers);
}

// Nobody's.
void Nic::serve_look_door() {
  if (!look_door_.is_open()) return;
  look_door_.serve([this](std::string_view request) -> std::string {
    ownership_.own();
    std::string said;
    try {
      said = answer_look(request);
    } catch (const std::bad_alloc&) {
      said = "out of memory";
    }
    ownership_.release();
    return said;
  });
}

std::string Nic::answer_look(std::string_view request) {
  const std::string_view what = take_word(&request), verb = take_word(&request);
  if (what != "trace") return std::string(kKnown);
  if (verb == "show") {
    uint64_t from = 0;
    if (!request.empty() && !read_number(request, &from)) return std::string(kKnown);
    return trace_.page(from, LookDoor::kMostAnswerBytes);
  }
  if (verb == "add") {
    uint64_t most = 0;
    std::string why;
    if (!read_number(take_word(&request), &most)) return std::string(kKnown);
    if (!trace_.begin(most, request, &why)) return why;
  } else if (verb == "stop") {
    trace_.end();
  } else if (verb == "clear") {
    trace_.clear();
  } else if (verb != "status") {
    return std::string(kKnown);
  }
  look(trace_.is_running());
  return trace_.status();
}

// Owned.
void Nic::look(bool yes) {
  ports_.on_note = yes ? [this](const Note& note) { add_to_trace(note); } : std::function<void(const Note&)>();
  worker_->core().look(yes);
}

void Nic::add_to_trace(const Note& note) {
  if (!trace_.note(worker_->monotonic_ns(), note)) worker_->core().look(false);
}

}  // namespace ub
