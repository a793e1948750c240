// SPDX-License-Identifier: Apache-2.0
//
// What becomes of claimed pages: they are written back, dropped, released.
//
// A page is write-protected before it is compared with its twin. Whoever writes to it then faults, finds it busy and
// waits; so nothing is written between the comparison and the moment when the page is clean or gone.
#include <algorithm>
#include <bit>

#include "lib/base/application_memory.h"
#include "lib/urma/aperture/window/cached_window.h"

namespace ub::aperture {
namespace {

// Calls act(first page, count) for pages that lie beside each other among those which `chosen` wants, and passes its
// answer on to the claims: false is an error of the kernel.
template <class Claim, class Chosen, class Act>
void for_each_row(std::span<Claim> claims, Chosen chosen, Act act) {
  for (size_t i = 0; i < claims.size();) {
    if (!chosen(claims[i])) {
      ++i;
      continue;
    }
    size_t end = i + 1;
    while (end < claims.size() && chosen(claims[end]) && claims[end].page == claims[i].page + (end - i)) ++end;
    const bool done = act(claims[i].page, end - i);
    for (; i < end; ++i) {
      if (!done) claims[i].status = URMA_CR_LOC_OPERATION_ERR;
    }
  }
}

}  // namespace

// The first error. A page with an error stays as it was, and its owner stays the same.
urma_cr_status_t CachedWindow::settle(std::span<Claim> claims) {
  write_back(claims);
  drop(claims);
  urma_cr_status_t first_error = URMA_CR_SUCCESS;
  for (Claim& claim : claims) {
    if (first_error == URMA_CR_SUCCESS) first_error = claim.status;
    release(claim);
  }
  return first_error;
}

void CachedWindow::write_back(std::span<Claim> claims) {
  for_each_row(
      claims, [](const Claim& c) { return c.sends(); },
      [this](uint64_t first, uint64_t count) { return memory_.protect(first, count); });
  if (const urma_cr_status_t status = send(claims); status != URMA_CR_SUCCESS) {
    // One fence answers for all, so it is not known which of them failed: each tries again alone.
    for (Claim& claim : claims) {
      if (claim.sends() && claim.status == URMA_CR_SUCCESS) {
        claim.status = claims.size() == 1 ? status : send({&claim, 1});
      }
    }
  }
  for (Claim& claim : claims) {
    if (!claim.sends()) continue;
    if (claim.status == URMA_CR_SUCCESS) {
      claim.word.state = PageState::kClean;
      slots_.mark_clean(claim.word.slot);
      counters_.written_back_pages.add();
    } else {
      memory_.unprotect(claim.page, 1);
      counters_.failed_write_backs.add();
    }
  }
}

// Stores what differs from the twins of those that are to be sent, and waits for the answers.
urma_cr_status_t CachedWindow::send(std::span<const Claim> claims) {
  const auto to_be_sent = [](const Claim& c) { return c.sends() && c.status == URMA_CR_SUCCESS; };
  if (std::none_of(claims.begin(), claims.end(), to_be_sent)) return URMA_CR_SUCCESS;
  const ApplicationMemory guard;
  const PathPool::Claim way = paths_.claim(counters_.path_waits);
  urma_cr_status_t first_error = URMA_CR_SUCCESS;
  for (const Claim& claim : claims) {
    if (!to_be_sent(claim)) continue;
    const std::byte* page = memory_.at(claim.page);
    for_each_change(page, twins_.of(claim.word.slot), valid_bytes(claim.page),
                    [&](uint32_t from, uint32_t bytes, const uint64_t* enables) {
                      const urma_cr_status_t status =
                          way.path().store({remote_place(claim.page) + from, page + from, bytes, enables});
                      if (first_error == URMA_CR_SUCCESS) first_error = status;
                      for (uint32_t line = 0; line * kLineBytes < bytes; ++line) {
                        counters_.written_back_lines.add();
                        counters_.written_back_bytes.add(static_cast<uint64_t>(std::popcount(enables[line])));
                      }
                    });
  }
  const urma_cr_status_t fenced = way.path().fence();
  return first_error != URMA_CR_SUCCESS ? first_error : fenced;
}

void CachedWindow::drop(std::span<Claim> claims) {
  const auto goes = [](const Claim& c) {
    return c.treatment.drop && c.word.is_present() && c.status == URMA_CR_SUCCESS;
  };
  for_each_row(claims, goes, [this](uint64_t first, uint64_t count) { return memory_.drop(first, count); });
  for (Claim& claim : claims) {
    if (!goes(claim)) continue;
    slots_.give_back(claim.word.slot);
    claim.word = {.owned = claim.word.owned};
  }
}

void CachedWindow::release(Claim& claim) {
  if (claim.status == URMA_CR_SUCCESS) claim.word.owned = claim.treatment.owned;
  table_.release(claim.page, claim.word);
}

}  // namespace ub::aperture
