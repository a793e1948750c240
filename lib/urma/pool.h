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
#include <deque>
#include <memory>
#include <new>
#include <vector>

namespace ub::urma {

template <class T>
class ObjectPool {
 public:
  // A value-initialised object, or null: out of memory.
  T* take() {
    Node* node = nullptr;
    if (free_.size() > kRest) {
      node = free_.front();
      free_.pop_front();
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
    free_.push_back(node);
  }

  // Gives back every object in use, after `release(object)`.
  template <class Release>
  void reclaim(Release release) {
    for (auto& slab : slabs_) {
      for (size_t i = 0; i < kSlabObjects; ++i) {
        Node& node = slab[i];
        if (!node.in_use) continue;
        release(node.object);
        give(&node.object);
      }
    }
  }

 private:
  static constexpr size_t kRest = 64;  // objects that wait before one of them serves again
  static constexpr size_t kSlabObjects = 32;

  struct Node {
    T object{};
    bool in_use = false;
  };

  Node* carve() {
    if (carved_ == kSlabObjects || slabs_.empty()) {
      std::unique_ptr<Node[]> slab(new (std::nothrow) Node[kSlabObjects]);
      if (slab == nullptr) return nullptr;
      slabs_.push_back(std::move(slab));
      carved_ = 0;
    }
    return &slabs_.back()[carved_++];
  }

  std::vector<std::unique_ptr<Node[]>> slabs_;
  size_t carved_ = 0;
  std::deque<Node*> free_;
};

}  // namespace ub::urma
