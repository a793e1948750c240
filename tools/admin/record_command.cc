// SPDX-License-Identifier: Apache-2.0
//
// urma_admin record: asks a running instance at its door (dataplane/look_door.h) to record what enters its Core.
#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <string>

#include "tools/admin/commands.h"
#include "tools/admin/visit.h"

namespace ub::tools {

int record_instance(const InstanceSelection& selection, const RecordWish& wish) {
  Visit visit;
  if (!visit.open(selection)) return 1;
  std::string request = "record " + wish.verb;
  if (wish.verb == "on") {
    request += fmt::format(" {} {} {} {} file={}", wish.bytes, wish.files, wish.headers ? 1 : 0, wish.payload ? 1 : 0,
                           std::filesystem::absolute(wish.path).lexically_normal().string());
  }
  const std::optional<std::string> status = visit.ask(request);
  if (!status) return 1;
  fmt::print("{}: {}\n", visit.instance(), status->substr(3));
  return 0;
}

}  // namespace ub::tools
