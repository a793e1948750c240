/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Doubly linked list whose links live inside the elements (URMA API 0.9).
 *
 * Idea: a ring through a head that is no element; an empty list is a head linked to itself. Nothing is
 * allocated. The caller serialises access.
 */
#ifndef UB_LIST_H
#define UB_LIST_H

#include "ub_util.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ub_list {
  struct ub_list* prev;
  struct ub_list* next;
};

#define UB_LIST_INITIALIZER(list) \
  { (list), (list) }

/** Makes an empty list. */
static inline void ub_list_init(struct ub_list* list) { list->prev = list->next = list; }

/** Puts elem in front of `before`, or at the end if that is the head. */
static inline void ub_list_insert_before(struct ub_list* before, struct ub_list* elem) {
  elem->prev = before->prev;
  elem->next = before;
  before->prev->next = elem;
  before->prev = elem;
}

/** Puts elem behind `after`, or at the start if that is the head. */
static inline void ub_list_insert_after(struct ub_list* after, struct ub_list* elem) {
  ub_list_insert_before(after->next, elem);
}

static inline void ub_list_push_front(struct ub_list* list, struct ub_list* elem) { ub_list_insert_after(list, elem); }

static inline void ub_list_push_back(struct ub_list* list, struct ub_list* elem) { ub_list_insert_before(list, elem); }

/** Takes elem out and makes it an empty list of its own. @return the element that followed. */
static inline struct ub_list* ub_list_remove(struct ub_list* elem) {
  struct ub_list* next = elem->next;
  elem->prev->next = next;
  next->prev = elem->prev;
  ub_list_init(elem);
  return next;
}

static inline bool ub_list_is_empty(const struct ub_list* list) { return list->next == list; }

/** First and last element; NULL if the list is empty. */
static inline struct ub_list* ub_list_front(const struct ub_list* list) {
  return ub_list_is_empty(list) ? NULL : list->next;
}

static inline struct ub_list* ub_list_back(const struct ub_list* list) {
  return ub_list_is_empty(list) ? NULL : list->prev;
}

/** Takes out the first or last element. @return it; NULL if the list is empty. */
static inline struct ub_list* ub_list_pop_front(struct ub_list* list) {
  struct ub_list* elem = ub_list_front(list);
  if (elem != NULL) (void)ub_list_remove(elem);
  return elem;
}

static inline struct ub_list* ub_list_pop_back(struct ub_list* list) {
  struct ub_list* elem = ub_list_back(list);
  if (elem != NULL) (void)ub_list_remove(elem);
  return elem;
}

/** Number of elements; walks the list. */
static inline size_t ub_list_size(const struct ub_list* list) {
  const struct ub_list* elem;
  size_t cnt = 0;
  for (elem = list->next; elem != list; elem = elem->next) cnt++;
  return cnt;
}

/* Loop over the elements; `node` is a pointer to the struct that holds the link `member`. */
#define UB_LIST_FOR_EACH(node, member, list)                                      \
  for (INIT_CONTAINER_PTR(node, (list)->next, member); &(node)->member != (list); \
       ASSIGN_CONTAINER_PTR(node, (node)->member.next, member))

/* The same; the body may remove the current element. `next_node` is a second such pointer. */
#define UB_LIST_FOR_EACH_SAFE(node, next_node, member, list)                                         \
  for (INIT_CONTAINER_PTR(node, (list)->next, member);                                               \
       &(node)->member != (list) && (INIT_CONTAINER_PTR(next_node, (node)->member.next, member), 1); \
       (node) = (next_node))

#ifdef __cplusplus
}
#endif

#endif /* UB_LIST_H */
