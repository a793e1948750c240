/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that defines macros of the headers once more, with the same tokens: no redefinition, so nothing warns.
 * Compiled only, as C and as C++.
 */
#include <stdio.h>
#include <urma_api.h>

#define EID_RAW_ARGS(p) \
  p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8], p[9], p[10], p[11], p[12], p[13], p[14], p[15]
#define EID_ARGS(eid) EID_RAW_ARGS((eid).raw)

int print_eid(const urma_eid_t* eid);
int print_eid(const urma_eid_t* eid) { return printf("eid " EID_FMT "\n", EID_ARGS(*eid)); }
