// SPDX-License-Identifier: Apache-2.0
// pool.h - where API objects live: memory that never goes back to the heap and never changes its type.
//
// A handle that the application uses after deletion therefore still points at an object of its kind, whose
// magic is no longer the live one: the call answers EINVAL instead of reading freed memory. Freed objects
// rest in a queue before they serve again, so that such a handle does not soon name a stranger.
//
// Thread: the owner's mutex.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace ub::urma {

template <class T>
class ObjectPool {
 public:
  // A value-initialised object, or null: out of memory.
  T* take() {
    Node* node = nullptr;
    if (resting_ > kRest) {
      node = oldest_;
      oldest_ = node->next;
      --resting_;
      node->object.~T();
      new (&node->object) T{};
    } else {
      node = carve();
      if (node == nullptr) return nullptr;
    }
    node->in_use = true;
    return &node->object;
  }

  void give(T* object) {
    Node* node = reinterpret_cast<Node*>(object);  // first member
    node->in_use = false;
    node->next = nullptr;
    (resting_++ == 0 ? oldest_ : newest_->next) = node;
    newest_ = node;
  }

  // Every object in use.
  template <class Fn>
  void for_each(Fn fn) {
    for (Slab* slab = slabs_.get(); slab != nullptr; slab = slab->older.get()) {
      for (Node& node : slab->nodes) {
        if (node.in_use) fn(node.object);
      }
    }
  }

  // Gives back every object in use, after `release(object)`.
  template <class Release>
  void reclaim(Release release) {
    for_each([&](T& object) {
      release(object);
      give(&object);
    });
  }

 private:
  static constexpr size_t kRest = 64;  // objects that wait before one of them serves again
  static constexpr size_t kSlabObjects = 32;

  struct Node {
    T object{};
    bool in_use = false;
    Node* next = nullptr;  // of those that rest
  };
  struct Slab {
    Node nodes[kSlabObjects];
    std::unique_ptr<Slab> older;
  };

  Node* carve() {
    if (carved_ == kSlabObjects || slabs_ == nullptr) {
      std::unique_ptr<Slab> slab(new (std::nothrow) Slab);
      if (slab == nullptr) return nullptr;
      slab->older = std::move(slabs_);
      slabs_ = std::move(slab);
      carved_ = 0;
    }
    return &slabs_->nodes[carved_++];
  }

  std::unique_ptr<Slab> slabs_;  // the newest
  size_t carved_ = 0;
  Node* oldest_ = nullptr;
  Node* newest_ = nullptr;
  size_t resting_ = 0;
};

}  // namespace ub::urma
