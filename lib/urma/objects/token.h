// SPDX-License-Identifier: Apache-2.0
// token.h - token ids, for the segments that bring their own.
#pragma once

#include "lib/urma/objects/objects.h"

namespace ub::urma {

// Null: `*error` is an errno value.
TokenId* create_token_id(urma_context_t* ctx, urma_token_id_flag_t flag, int* error);
urma_status_t destroy_token_id(TokenId& token);

}  // namespace ub::urma
