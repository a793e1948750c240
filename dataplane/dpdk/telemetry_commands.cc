// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dpdk/telemetry_commands.h"

#include <rte_telemetry.h>

#include <cerrno>
#include <exception>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/telemetry.h"

namespace ub::dpdk {
namespace {

using Json = nlohmann::ordered_json;

// Lives for ever, like the commands.
struct Answering {
  std::mutex mutex;
  std::vector<const TelemetryAnswer*> nics;  // in the order in which they were opened
};
Answering& answering() {
  static Answering* const all = new Answering;
  return *all;
}

void fill_array(rte_tel_data* to, const Json& array) {
  const bool texts = array.empty() || array.front().is_string();
  rte_tel_data_start_array(to, texts ? RTE_TEL_STRING_VAL : RTE_TEL_U64_VAL);
  for (const Json& value : array) {
    if (texts) {
      rte_tel_data_add_array_string(to, value.get_ref<const std::string&>().c_str());
    } else {
      rte_tel_data_add_array_u64(to, value.get<uint64_t>());
    }
  }
}

void fill_object(rte_tel_data* to, const Json& object) {
  rte_tel_data_start_dict(to);
  for (const auto& [name, value] : object.items()) {
    if (value.is_string()) {
      rte_tel_data_add_dict_string(to, name.c_str(), value.get_ref<const std::string&>().c_str());
    } else if (!value.is_structured()) {
      rte_tel_data_add_dict_u64(to, name.c_str(), value.get<uint64_t>());
    } else if (rte_tel_data* inner = rte_tel_data_alloc(); inner != nullptr) {
      value.is_object() ? fill_object(inner, value) : fill_array(inner, value);
      if (rte_tel_data_add_dict_container(to, name.c_str(), inner, 0) != 0) rte_tel_data_free(inner);
    }
  }
}

std::optional<std::string> answer_of_first(const std::string& request) {
  Answering& all = answering();
  const std::lock_guard lock(all.mutex);
  std::string why;
  return all.nics.empty() ? std::nullopt : (*all.nics.front())(request, &why);
}

// Not 0: DPDK answers with null.
int answer(const char* command, const char* parameters, rte_tel_data* to) try {
  std::string request = command;
  if (parameters != nullptr && *parameters != 0) request += std::string(",") + parameters;
  const std::optional<std::string> text = answer_of_first(request);
  if (!text) return -EINVAL;
  fill_object(to, Json::parse(*text).at(command));
  return 0;
} catch (const std::exception&) {  // out of memory
  return -ENOMEM;
}

}  // namespace

TelemetryAnswers::TelemetryAnswers(TelemetryAnswer given) : answer_(std::move(given)) {
  if (!answer_) return;
  static std::once_flag once;
  std::call_once(once, [] {
    for (const TelemetryCommand* c = telemetry_commands(); c->path != nullptr; ++c)
      rte_telemetry_register_cmd(c->path, answer, c->help);
  });
  const std::lock_guard lock(answering().mutex);
  answering().nics.push_back(&answer_);
}

TelemetryAnswers::~TelemetryAnswers() {
  const std::lock_guard lock(answering().mutex);
  std::erase(answering().nics, &answer_);
}

}  // namespace ub::dpdk
