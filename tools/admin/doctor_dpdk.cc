// SPDX-License-Identifier: Apache-2.0
//
// The DPDK device, as far as one can see without opening it: a device that is opened is taken from whoever has it.
#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "dataplane/dpdk_devices.h"
#include "dataplane/eid.h"
#include "dataplane/plugin_port.h"
#include "tools/admin/doctor_look.h"

namespace ub::tools {
namespace {

namespace fs = std::filesystem;

void look_at_plugin(const std::string& library, DpdkFacts* d) {
  void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) {
    d->plugin_error = ::dlerror();
    return;
  }
  link_map* map = nullptr;
  if (::dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr) d->plugin_path = map->l_name;
  if (::dlsym(handle, kOpenPluginPort) == nullptr) d->plugin_error = library + " is no port plugin of SoftUB";
}

std::string link_name(const fs::path& path) {
  std::error_code error;
  return fs::read_symlink(path, error).filename();
}

void look_at_pci(const std::string& address, DpdkDeviceFacts* d) {
  const fs::path device = fs::path("/sys/bus/pci/devices") / address;
  std::error_code error;
  d->present = fs::exists(device, error);
  if (!d->present) return;
  d->driver = link_name(device / "driver");
  d->iommu_group = link_name(device / "iommu_group");
  d->numa_node = std::atoi(first_line(device / "numa_node").c_str());
  d->vfio = fs::exists("/dev/vfio/vfio", error);
  d->unsafe_noiommu = first_line("/sys/module/vfio/parameters/enable_unsafe_noiommu_mode") == "Y";
  if (d->driver != "vfio-pci" || d->iommu_group.empty()) return;
  ipc::Fd group(::open(("/dev/vfio/" + d->iommu_group).c_str(), O_RDWR | O_CLOEXEC));
  if (!group) d->group_error = std::strerror(errno);
}

void look_at_interface(const DeviceName& device, DpdkDeviceFacts* d) {
  d->interface_mtu = static_cast<uint32_t>(number_in("/sys/class/net/" + device.interface + "/mtu"));
  const std::string node = first_line("/sys/class/net/" + device.interface + "/device/numa_node");
  if (!node.empty()) d->numa_node = std::atoi(node.c_str());
  const int family = device.kind == DeviceName::Kind::kAfXdp ? AF_XDP : AF_PACKET;
  ipc::Fd fd(::socket(family, SOCK_RAW | SOCK_CLOEXEC, 0));
  if (!fd) d->raw_socket_error = std::strerror(errno);
}

DpdkDeviceFacts look_at_device(const std::string& devargs) {
  DpdkDeviceFacts d;
  d.devargs = devargs;
  const DeviceName device = parse_device(devargs);
  if (device.kind == DeviceName::Kind::kPci) look_at_pci(device.pci, &d);
  if (!device.interface.empty()) look_at_interface(device, &d);
  if (!device.socket.empty()) {
    d.socket_directory = fs::path(device.socket).parent_path();
    d.socket_directory_usable = ::access(d.socket_directory.c_str(), W_OK | X_OK) == 0;
  }
  return d;
}

}  // namespace

DpdkFacts look_at_dpdk(const Config& c) {
  DpdkFacts d;
  look_at_plugin(c.dpdk.plugin, &d);
  for (const std::string& devargs : dpdk_devices(c.dpdk)) d.devices.push_back(look_at_device(devargs));
  dpdk_ports(c.dpdk, &d.assignment_error);
  return d;
}

}  // namespace ub::tools
