// SPDX-License-Identifier: Apache-2.0
#include "tools/admin/doctor_firewall.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <sstream>

namespace ub::tools {
namespace {

// A rule or a chain's policy that matters, and the command that would change it.
struct Hint {
  std::string rule, command;
};

// What a whole set of rules holds.
struct Summary {
  std::vector<Hint> blocks;   // name the port, and drop or reject
  std::vector<Hint> filters;  // drop what no rule names
  bool opens = false;         // a rule names the port and accepts
};

std::string trimmed(const std::string& s) {
  const size_t from = s.find_first_not_of(" \t");
  if (from == std::string::npos) return "";
  return s.substr(from, s.find_last_not_of(" \t") - from + 1);
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string w; stream >> w;) words.push_back(w);
  return words;
}

bool has_word(const std::string& line, const char* word) {
  for (const std::string& w : words_of(line))
    if (w == word) return true;
  return false;
}

// Behind "dport", up to what the rule does: "4792", "{ 22, 4792 }", "4000-5000", "4000:5000", "22,4792".
std::string ports_of(const std::string& line) {
  const size_t from = line.find("dport");
  if (from == std::string::npos) return "";
  size_t to = line.size();
  for (const char* next : {" accept", " drop", " reject", " counter", " log", " #", " -"})
    to = std::min(to, line.find(next, from));
  return line.substr(from, to - from);
}

bool names_port(const std::string& line, uint16_t port) {
  const std::string ports = ports_of(line);
  const char* p = ports.c_str();
  const char* end = p + ports.size();
  uint32_t low = 0;
  bool range = false;
  while (p != end) {
    uint32_t number = 0;
    const auto [next, status] = std::from_chars(p, end, number);
    if (status != std::errc()) {
      if (!range || (*p != '-' && *p != ':')) range = false;
      ++p;
      continue;
    }
    if (number == port || (range && low <= port && port <= number)) return true;
    low = number;
    range = next != end && (*next == '-' || *next == ':');
    p = next;
  }
  return false;
}

bool of_udp(const std::string& line) { return line.find("tcp") == std::string::npos; }

// ---- nft -a list ruleset ---------------------------------------------------------------------------------------

Summary read_nft(const std::string& text, uint16_t port) {
  Summary s;
  std::istringstream stream(text);
  std::string table, chain;
  bool input = false;
  for (std::string raw; std::getline(stream, raw);) {
    const std::string line = trimmed(raw);
    const auto words = words_of(line);
    if (words.size() >= 3 && words[0] == "table") table = words[1] + " " + words[2];
    if (words.size() >= 2 && words[0] == "chain") chain = words[1], input = false;
    const bool head = has_word(line, "hook");
    if (head) input = has_word(line, "input");
    const bool drops = has_word(line, "drop") || has_word(line, "drop;") || line.find("reject") != std::string::npos;
    if (head ? !(input && line.find("policy drop") != std::string::npos) : !drops) {
      s.opens |= !head && of_udp(line) && names_port(line, port) && has_word(line, "accept");
      continue;
    }
    const std::string where = table + " " + chain;
    const std::string open = fmt::format("nft insert rule {} udp dport {} accept", where, port);
    const size_t handle = line.find("# handle ");
    const std::string rule = fmt::format("\"{}\" in {}", trimmed(line.substr(0, handle)), where);
    if (!head && of_udp(line) && names_port(line, port)) {
      s.blocks.push_back({rule, handle == std::string::npos
                                    ? open
                                    : fmt::format("nft delete rule {} handle {}", where, line.substr(handle + 9))});
    } else if (input && line.find("dport") == std::string::npos && line.find("ct state") == std::string::npos) {
      s.filters.push_back({rule, open});
    }
  }
  return s;
}

// ---- iptables-save, ip6tables-save -----------------------------------------------------------------------------

Summary read_iptables(const std::string& tool, const std::string& text, uint16_t port) {
  Summary s;
  std::istringstream stream(text);
  const std::string open = fmt::format("{} -I INPUT -p udp --dport {} -j ACCEPT", tool, port);
  for (std::string line; std::getline(stream, line);) {
    const bool policy = line.rfind(":INPUT DROP", 0) == 0;
    const bool rule = line.rfind("-A ", 0) == 0;
    const bool drops = line.find("-j DROP") != std::string::npos || line.find("-j REJECT") != std::string::npos;
    const bool named = rule && of_udp(line) && names_port(line, port);
    if (named && drops) {
      s.blocks.push_back({fmt::format("\"{}\" of {}", line, tool), fmt::format("{} -D {}", tool, line.substr(3))});
    } else if (named && line.find("-j ACCEPT") != std::string::npos) {
      s.opens = true;
    } else if (policy || (drops && line.rfind("-A INPUT", 0) == 0 && line.find("dport") == std::string::npos &&
                          line.find("INVALID") == std::string::npos)) {
      s.filters.push_back({fmt::format("\"{}\" of {}", line, tool), open});
    }
  }
  return s;
}

}  // namespace

Finding judge_firewall(const FirewallFacts& f, uint16_t port) {
  Finding r{"firewall", Verdict::kOk, "no rule drops UDP " + std::to_string(port), ""};
  if (f.rules.empty()) {
    r.verdict = Verdict::kSkipped;
    r.found =
        f.privileged ? "neither nft nor iptables-save is here to read the rules with" : "only root can read the rules";
    r.advice = f.privileged ? "urma_admin doctor --peer ADDRESS tries the way itself" : "sudo urma_admin doctor";
    return r;
  }
  const Hint* filter = nullptr;
  bool opens = false;
  std::vector<Summary> all;
  for (const auto& rules : f.rules) {
    all.push_back(rules.tool == "nft" ? read_nft(rules.text, port) : read_iptables(rules.tool, rules.text, port));
  }
  for (const Summary& s : all) {
    if (!s.blocks.empty()) {
      return {r.item, Verdict::kProblem, s.blocks[0].rule + " stops UDP " + std::to_string(port),
              "as root: " + s.blocks[0].command};
    }
    if (!s.filters.empty() && filter == nullptr) filter = &s.filters[0];
    opens |= s.opens;
  }
  if (opens) {
    r.found = fmt::format("a rule accepts UDP {}; whether from every peer, --peer shows", port);
  } else if (filter != nullptr) {
    r.verdict = Verdict::kWarning;
    r.found = fmt::format("{} drops what no other rule accepts, and none names UDP {}", filter->rule, port);
    r.advice = "as root: " + filter->command;
  }
  return r;
}

}  // namespace ub::tools
