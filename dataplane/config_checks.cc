// SPDX-License-Identifier: Apache-2.0
#include "dataplane/config_checks.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <set>
#include <string_view>
#include <utility>

#include "dataplane/eid.h"
#include "dataplane/path_mapping.h"
#include "lib/base/fault/plan_text.h"
#include "lib/impair/text.h"

namespace ub::configuration {

using std::chrono::nanoseconds;

namespace {

bool is_ip_address(const std::string& text) {
  in6_addr address;
  return inet_pton(AF_INET, text.c_str(), &address) == 1 || inet_pton(AF_INET6, text.c_str(), &address) == 1;
}

// What is wrong with a text of docs/fault-injection.md. `of_daemon`: the programs that use the NIC are others.
std::string fault_error(const std::string& text, bool of_daemon) {
  const fault::ParsedPlan parsed = fault::parse_plan(text);
  if (!parsed.plan) return parsed.error;
  const bool of_program = !parsed.plan->program.empty() || parsed.plan->nic.rnr;
  return of_daemon && of_program ? "completion, post and rnr are faults of a program: give them to it, in fault.inject"
                                 : "";
}

// One string, or one element of a list. Returns what is wrong with it, or nothing.
std::string check_string(const Key& key, const std::string& text) {
  if (text.find('\0') != std::string::npos) return key.full_name() + " contains a NUL character";
  const std::string subject = key.full_name() + ": " + quoted(text);
  if (key.rule == "name") {
    const bool good = !text.empty() && text.size() <= 63 && std::all_of(text.begin(), text.end(), [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-';
    });
    return good ? "" : subject + " is not a name of " + range_text(key);
  }
  if (key.rule == "path") return text.empty() || text[0] == '/' ? "" : subject + " is not an absolute path";
  if (key.rule == "core") {
    const bool good = !text.empty() && text.size() <= 4 && text.find_first_not_of("0123456789") == std::string::npos;
    return good ? "" : subject + " is no number of a CPU";
  }
  if (key.rule == "ip") return is_ip_address(text) ? "" : subject + " is not an IP address";
  if (key.rule == "ip/prefix@name")
    return parse_network(text.substr(0, text.find('@'))) ? "" : subject + " is no network such as 10.1.0.2/24";
  if (key.rule == "ip=mac")
    return parse_neighbour(text) ? "" : subject + " is no pair such as 10.1.0.3=02:00:00:00:00:03";
  if (key.rule == "faults" || key.rule == "nic faults") {
    const std::string error = fault_error(text, key.rule == "nic faults");
    return error.empty() ? "" : key.full_name() + ": " + error;
  }
  if (key.rule == "impairments") {
    const std::string error = impair::parse(text).error;
    return error.empty() ? "" : key.full_name() + ": " + error;
  }
  if (key.rule == "ip=ip") {
    const size_t equals = text.find('=');
    const bool good =
        equals != std::string::npos && is_ip_address(text.substr(0, equals)) && is_ip_address(text.substr(equals + 1));
    return good ? "" : subject + " is not of the form EID=IP, two IP addresses";
  }
  if (key.rule == "ip=ip>ip") {
    if (parse_path_mapping(text)) return {};
    return subject + " is not of the form PEER=LOCAL>REMOTE, three IP addresses of one family";
  }
  const StringList allowed = choices(key);
  if (allowed.empty() || std::find(allowed.begin(), allowed.end(), text) != allowed.end()) return {};
  return key.full_name() + " = " + quoted(text) + ": expected one of " + range_text(key);
}

std::string check_list(const Key& key, const StringList& list) {
  std::set<std::string> seen;
  for (const std::string& element : list) {
    if (std::string error = check_string(key, element); !error.empty()) return error;
    if (!seen.insert(element).second) return key.full_name() + ": " + quoted(element) + " occurs twice";
  }
  if (list.empty() && key.rule.starts_with("choice:")) {
    return key.full_name() + " is empty: expected at least one of " + range_text(key);
  }
  return {};
}

uint64_t as_number(const Key& key, std::string_view text) {
  const Value value = parse_text(key, text).value;
  return key.type == KeyType::Duration ? static_cast<uint64_t>(std::get<nanoseconds>(value).count())
                                       : std::get<uint64_t>(value);
}

std::string check_number(const Key& key, const std::string& shown, uint64_t number) {
  const StringList allowed = choices(key);
  if (!allowed.empty()) {
    const bool found = std::find(allowed.begin(), allowed.end(), shown) != allowed.end();
    return found ? std::string() : out_of_range(key, shown);
  }
  if (number < as_number(key, key.min) || number > as_number(key, key.max)) return out_of_range(key, shown);
  if (key.rule == "pow2" && (number & (number - 1)) != 0) {
    return key.full_name() + " = " + shown + " is not a power of two in " + std::string(key.min) + ".." +
           std::string(key.max) + in_unit(key);
  }
  if (key.rule == "not 4791" && number == 4791) {
    return key.full_name() + " = " + shown +
           " is the port of RoCE: peers would take UB packets for its own; choose another";
  }
  return {};
}

size_t index_of(std::string_view full_name) {
  for (size_t i = 0; i < keys().size(); ++i) {
    if (keys()[i].full_name() == full_name) return i;
  }
  abort();  // a typing error in check_together, met by every test
}

void check_not_above(const LoadedConfig& config, std::vector<std::string>* errors, std::string_view low_name,
                     std::string_view high_name) {
  const size_t low = index_of(low_name);
  const size_t high = index_of(high_name);
  const Value low_value = keys()[low].get(config);
  const Value high_value = keys()[high].get(config);
  if (low_value <= high_value) return;
  const std::string& culprit = config.sources[low] == "default" ? config.sources[high] : config.sources[low];
  errors->push_back(culprit + ": " + keys()[low].full_name() + " = " + format(keys()[low], low_value) + " (" +
                    config.sources[low] + ") is above " + keys()[high].full_name() + " = " +
                    format(keys()[high], high_value) + " (" + config.sources[high] + ")");
}

}  // namespace

std::string check_value(const Key& key, const Value& value) {
  switch (key.type) {
    case KeyType::Bool:
      return {};
    case KeyType::String:
      return check_string(key, std::get<std::string>(value));
    case KeyType::List:
      return check_list(key, std::get<StringList>(value));
    case KeyType::U32:
    case KeyType::Bytes:
      return check_number(key, format(key, value), std::get<uint64_t>(value));
    case KeyType::Duration:
      return check_number(key, format(key, value), static_cast<uint64_t>(std::get<nanoseconds>(value).count()));
  }
  return {};
}

void check_together(const LoadedConfig& config, std::vector<std::string>* errors) {
  check_not_above(config, errors, "transport.rto_min", "transport.rto_max");
  check_not_above(config, errors, "transport.rto_max", "transport.channel_timeout");
  check_not_above(config, errors, "transport.setup_retry_min", "transport.channel_timeout");
  check_not_above(config, errors, "transport.paths", "transport.most_paths");
  check_not_above(config, errors, "congestion.swift_least_scaled", "congestion.swift_most_scaled");
  check_not_above(config, errors, "congestion.loss_least_packets", "congestion.loss_initial_packets");
  check_not_above(config, errors, "progress.helper_backoff_min", "progress.helper_backoff_max");
}

std::string put_in_force(size_t key, Parsed&& found, std::string source, LoadedConfig* config) {
  if (found.error.empty()) found.error = check_value(keys()[key], found.value);
  if (!found.error.empty()) return std::move(found.error);
  keys()[key].set(*config, std::move(found.value));
  config->sources[key] = std::move(source);
  return {};
}

}  // namespace ub::configuration
