// SPDX-License-Identifier: Apache-2.0
// status.h - answers of the back end in the words of the API: URMA_* for calls that return a status, errno
// for those that return a pointer.
#pragma once

#include <cerrno>

#include "lib/urma/backends/backend.h"
#include "lib/urma/include/ub/umdk/urma/urma_types.h"

namespace ub::urma {

inline urma_status_t status_of(Status status) {
  switch (status) {
    case Status::kOk:
      return URMA_SUCCESS;
    case Status::kInvalid:
      return URMA_EINVAL;
    case Status::kNoMemory:
    case Status::kNoId:
      return URMA_ENOMEM;
    case Status::kExists:
      return URMA_EEXIST;
    case Status::kBusy:
      return URMA_FAIL;  // "still used"; EAGAIN would say that waiting helps
    case Status::kGone:
      return URMA_FAIL;  // nothing helps but urma_uninit and urma_init
  }
  return URMA_FAIL;
}

// Arguments were checked before the back end was asked, so what it finds invalid is the device's matter.
inline int errno_of(Status status) {
  switch (status) {
    case Status::kNoMemory:
    case Status::kNoId:
      return ENOMEM;
    case Status::kExists:
      return EEXIST;
    case Status::kGone:
      return ENODEV;
    default:
      return EIO;
  }
}

// NULL with errno.
inline std::nullptr_t fail(int error) {
  errno = error;
  return nullptr;
}

}  // namespace ub::urma
