// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/models/model.h"

namespace ub::emu {
namespace {

constexpr Model kModels[] = {
    {"two_node", "two hosts that are joined by a link, and a program on one of them", run_two_node, true},
    {"controller", "windows that obey marks, by rules of the reference", run_controller, true},
    {"bottleneck", "queue pairs whose packets pass a transmitter that marks them", run_bottleneck},
    {"cluster", "hosts that read each other", run_cluster, true},
    {"incast", "many hosts with programs that reach one other host, and nobody else", run_incast, true},
    {"state", "bytes of a NIC's records or a library's objects", run_state},
    {"fabric_state", "bytes of a host in fabrics of many hosts", run_fabric_state},
    {"setup", "connections are set up by workers", run_setup},
    {"setup_formula", "connections are set up one after the other, closed form", run_setup_formula},
    {"cluster_formula", "many hosts and a switch, closed form", run_cluster_formula},
    {"goodput", "two nodes, and a bridge that moves a flit at a time", run_goodput},
    {"coherent_formula", "coherent fabrics, closed form", run_coherent_formula},
    {"directory", "cores with caches, and a home with a directory", run_directory, true},
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
