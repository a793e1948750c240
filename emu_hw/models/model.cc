// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/models/model.h"

namespace ub::emu {
namespace {

constexpr Model kModels[] = {
    {"two_node", "two hosts that are joined by a link, and a program on one of them", run_two_node},
    {"cluster", "hosts that read each other, by the reference's rule of contention", run_cluster},
};

}  // namespace

std::span<const Model> all_models() { return kModels; }

const Model* find_model(std::string_view name) {
  for (const Model& model : kModels)
    if (model.name == name) return &model;
  return nullptr;
}

std::string names_of_models() {
  std::string names;
  for (const Model& model : kModels) names += (names.empty() ? "" : ", ") + std::string(model.name);
  return names;
}

}  // namespace ub::emu
