// SPDX-License-Identifier: Apache-2.0
#include "tools/admin/doctor_wire.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

namespace ub::tools {
namespace {

std::string padded(std::string text, size_t bytes) {
  text.resize(std::max(bytes, text.size()));
  return text;
}

// The words of a datagram of ours behind the two that all have; nothing if it is none.
std::optional<std::istringstream> open(std::string_view datagram, const char* verb) {
  const std::string_view text = datagram.substr(0, std::min(datagram.find('\0'), kSmallProbe));
  std::istringstream stream{std::string(text)};
  std::string name, version, word;
  if (!(stream >> name >> version >> word) || name != "softub-doctor" || version != "1" || word != verb)
    return std::nullopt;
  return stream;
}

}  // namespace

std::string write_question(const Question& q, size_t bytes) {
  return padded(fmt::format("softub-doctor 1 ask {} {}", q.nonce, q.answer_bytes), bytes);
}

std::optional<Question> read_question(std::string_view datagram) {
  auto stream = open(datagram, "ask");
  Question q;
  if (!stream || !(*stream >> q.nonce >> q.answer_bytes) || q.answer_bytes > datagram.size()) return std::nullopt;
  return q;
}

std::string write_answer(const Answer& a, size_t bytes) {
  return padded(fmt::format("softub-doctor 1 answer {} {} {}", a.nonce, a.asker, a.destination), bytes);
}

std::optional<Answer> read_answer(std::string_view datagram) {
  auto stream = open(datagram, "answer");
  Answer a;
  if (!stream || !(*stream >> a.nonce >> a.asker >> a.destination)) return std::nullopt;
  return a;
}

}  // namespace ub::tools
