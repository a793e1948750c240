// SPDX-License-Identifier: Apache-2.0
// Token ids: the numbers under which peers find segments.
#include "lib/urma/objects/token.h"

#include "lib/urma/include/ub/umdk/urma/urma_api.h"
#include "lib/urma/library.h"
#include "lib/urma/objects/children.h"
#include "lib/urma/status.h"

namespace ub::urma {

TokenId* create_token_id(urma_context_t* ctx, urma_token_id_flag_t flag, int* error) {
  Library& library = Library::get();
  auto* token = library.take<TokenId>();
  if (token == nullptr) {
    *error = ENOMEM;
    return nullptr;
  }
  Status status = backend().alloc_token_id(&token->pub.token_id);
  if (status != Status::kOk) {
    library.give(token);
    *error = errno_of(status);
    return nullptr;
  }
  token->pub.urma_ctx = ctx;
  token->pub.handle = token->pub.token_id;
  token->pub.flag = flag;
  add_child(ctx);
  token->magic = live_magic<TokenId>();
  return token;
}

urma_status_t destroy_token_id(TokenId& token) {
  Status status = backend().free_token_id(token.pub.token_id);
  if (status == Status::kBusy) return URMA_EINVAL;
  if (status != Status::kOk) return status_of(status);
  token.magic = 0;
  drop_child(token.pub.urma_ctx);
  Library::get().give(&token);
  return URMA_SUCCESS;
}

}  // namespace ub::urma

using namespace ub;
using namespace ub::urma;

urma_token_id_t* urma_alloc_token_id(urma_context_t* ctx) { return urma_alloc_token_id_ex(ctx, {}); }

urma_token_id_t* urma_alloc_token_id_ex(urma_context_t* ctx, urma_token_id_flag_t flag) {
  if (live<Context>(ctx) == nullptr) return fail(EINVAL);
  int error = 0;
  TokenId* token = create_token_id(ctx, flag, &error);
  if (token == nullptr) return fail(error);
  return &token->pub;
}

urma_status_t urma_free_token_id(urma_token_id_t* token_id) {
  auto* token = live<TokenId>(token_id);
  if (token == nullptr || token->internal || token->pub.ref.atomic_cnt.load() != 0) return URMA_EINVAL;
  return destroy_token_id(*token);
}
