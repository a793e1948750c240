// SPDX-License-Identifier: Apache-2.0
// Deleting several objects: all are checked before the first is deleted.
#include "lib/urma/include/ub/umdk/urma/urma_api.h"
#include "lib/urma/objects/objects.h"

using namespace ub::urma;

namespace {

// `check` answers for one live object, `remove` deletes it.
template <class T, class Check, class Remove>
urma_status_t delete_batch(typename T::Public** objects, int count, typename T::Public** bad, Check check,
                           Remove remove) {
  if (objects == nullptr || count < 1 || bad == nullptr) return URMA_EINVAL;
  for (int i = 0; i < count; ++i) {
    T* object = live<T>(objects[i]);
    urma_status_t status = object != nullptr ? check(*object) : URMA_EINVAL;
    if (status != URMA_SUCCESS) {
      *bad = objects[0];
      return status;
    }
  }
  for (int i = 0; i < count; ++i) {
    urma_status_t status = remove(objects[i]);
    if (status != URMA_SUCCESS) {
      *bad = objects[i];
      return status;
    }
  }
  return URMA_SUCCESS;
}

constexpr auto always_fine = [](const auto&) { return URMA_SUCCESS; };

}  // namespace

urma_status_t urma_delete_jfc_batch(urma_jfc_t** jfc_arr, int jfc_num, urma_jfc_t** bad_jfc) {
  return delete_batch<Jfc>(jfc_arr, jfc_num, bad_jfc, always_fine, urma_delete_jfc);
}

urma_status_t urma_delete_jfs_batch(urma_jfs_t** jfs_arr, int jfs_num, urma_jfs_t** bad_jfs) {
  return delete_batch<Jfs>(jfs_arr, jfs_num, bad_jfs, always_fine, urma_delete_jfs);
}

urma_status_t urma_delete_jfr_batch(urma_jfr_t** jfr_arr, int jfr_num, urma_jfr_t** bad_jfr) {
  return delete_batch<Jfr>(jfr_arr, jfr_num, bad_jfr, always_fine, urma_delete_jfr);
}

urma_status_t urma_delete_jetty_batch(urma_jetty_t** jetty_arr, int jetty_num, urma_jetty_t** bad_jetty) {
  auto unbound = [](const Jetty& jetty) { return jetty.pub.remote_jetty == nullptr ? URMA_SUCCESS : URMA_ENOPERM; };
  return delete_batch<Jetty>(jetty_arr, jetty_num, bad_jetty, unbound, urma_delete_jetty);
}
