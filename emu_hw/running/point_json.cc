// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/running/point_json.h"

#include <set>

namespace ub::emu {
namespace {

// A ledger refers to names that live as long as the program.
std::string_view kept(const std::string& name) {
  static std::set<std::string> all;
  return *all.insert(name).first;
}

Json ledger_json(const PointResult& point) {
  Json lines = Json::array();
  for (const Ledger::Line& line : point.ledger)
    lines.push_back({{"part", line.name.part}, {"host", line.name.host}, {"until_ps", line.until.ps}});
  return {{"begin_ps", point.begin.ps}, {"lines", std::move(lines)}};
}

void read_ledger(const Json& json, PointResult& point) {
  Time until = point.begin = Time{whole_number(json.at("begin_ps"))};
  for (const Json& line : json.at("lines")) {
    const Time next{whole_number(line.at("until_ps"))};
    if (next < until) throw BadFile("is damaged: a ledger goes back in time");
    until = next;
    const auto host = static_cast<uint32_t>(whole_number(line.at("host")));
    point.ledger.push_back({{kept(line.at("part")), host}, until});
  }
}

Json curve_json(const Curve& curve) {
  return {{"name", curve.name}, {"x", curve.x}, {"y", curve.y}, {"points", curve.points}};
}

Curve curve_of(const Json& json) { return {json.at("name"), json.at("x"), json.at("y"), json.at("points")}; }

}  // namespace

Json json_of(const PointResult& point) {
  Json json;
  if (!point.invalid.empty()) json["invalid"] = point.invalid;
  json["values"] = point.values;
  json["events"] = point.events;
  if (!point.ledger.empty()) json["ledger"] = ledger_json(point);
  for (const Curve& curve : point.curves) json["curves"].push_back(curve_json(curve));
  return json;
}

PointResult point_of(const Json& json) {
  PointResult point;
  point.invalid = json.value("invalid", "");
  point.values = json.at("values").get<std::map<std::string, double>>();
  point.events = whole_number(json.at("events"));
  if (json.contains("ledger")) read_ledger(json.at("ledger"), point);
  for (const Json& curve : json.value("curves", Json::array())) point.curves.push_back(curve_of(curve));
  return point;
}

}  // namespace ub::emu
