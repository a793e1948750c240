// SPDX-License-Identifier: Apache-2.0
//
// What two doctors say to each other. Words, so that a packet dump shows them, padded with zeros to the size that is
// tried. An answer is never longer than its question, so nobody can be flooded through a responder.
//
//   question   softub-doctor 1 ask NONCE BYTES          BYTES: wanted length of the answer
//   answer     softub-doctor 1 answer NONCE ASKER DESTINATION     "address:port" and address, as they arrived
//
// Over TCP, on the same port, a responder tells one line of JSON about itself and closes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ub::tools {

constexpr size_t kSmallProbe = 192;  // any answer fits

struct Question {
  uint64_t nonce = 0;
  uint32_t answer_bytes = 0;
};
struct Answer {
  uint64_t nonce = 0;
  std::string asker, destination;
};

std::string write_question(const Question&, size_t bytes);
std::optional<Question> read_question(std::string_view datagram);
std::string write_answer(const Answer&, size_t bytes);
std::optional<Answer> read_answer(std::string_view datagram);

}  // namespace ub::tools
