# SPDX-License-Identifier: Apache-2.0
# find_package(urma): the target urma::urma, and URMA_INCLUDE_DIRS and URMA_LIBRARIES.
get_filename_component(_urma_prefix "${CMAKE_CURRENT_LIST_DIR}/@up@" ABSOLUTE)
set(URMA_INCLUDE_DIRS "${_urma_prefix}/@includedir@" "${_urma_prefix}/@includedir@/ub/umdk/urma")
set(URMA_LIBRARIES "${_urma_prefix}/@libdir@/liburma.so")
if(NOT TARGET urma::urma)
  add_library(urma::urma SHARED IMPORTED)
  set_target_properties(urma::urma PROPERTIES IMPORTED_LOCATION "${URMA_LIBRARIES}"
                        INTERFACE_INCLUDE_DIRECTORIES "${URMA_INCLUDE_DIRS}")
endif()
unset(_urma_prefix)
