// SPDX-License-Identifier: Apache-2.0
//
// The run-time part of mutation testing: every mutant is in the program, one of them at most is in force.
//
// rewrite.py inserts the names below into a copy of the sources. An operator `a < b` becomes `a < lt<17>{} < b`, which
// has the same precedence and associativity: the first step makes a pair of a and 17, the second one compares, as
// mutant 17 if that one is in force. Constant expressions are never mutated. Used by the runner's processes, each of
// which has one thread.
#pragma once

#include <cstdint>
#include <type_traits>

namespace ub::mut {

constexpr uint32_t kMaxMutants = 1 << 15;

/// One byte for each mutant; not 0: `fire` must be asked. When mutants are recorded these are all that may still be
/// noted; when one is in force, it is that one.
extern uint8_t armed[kMaxMutants];

/// Recording: notes that mutant n was reached, and whether it would have changed a value; false. Else true.
bool fire(uint32_t n, bool changes);

#define UB_MUT_INLINE [[gnu::always_inline]] constexpr

[[gnu::always_inline]] inline bool ask(uint32_t n, bool changes) { return armed[n] != 0 && fire(n, changes); }

/// A statement that mutant n leaves out.
UB_MUT_INLINE bool on(uint32_t n) { return !std::is_constant_evaluated() && ask(n, true); }

/// A condition that mutant N turns round.
template <uint32_t N, class T>
UB_MUT_INLINE bool negated(const T& value) {
  const bool right = static_cast<bool>(value);
  return on(N) ? !right : right;
}

/// An operand of && or || that mutant N takes for `Fixed`, so that it decides nothing.
template <uint32_t N, bool Fixed, class T>
UB_MUT_INLINE bool operand(const T& value) {
  const bool right = static_cast<bool>(value);
  if (!std::is_constant_evaluated() && ask(N, right != Fixed)) return Fixed;
  return right;
}

/// A number that mutant N makes one larger.
template <uint32_t N, class T>
UB_MUT_INLINE T literal(T value) {
  return on(N) ? static_cast<T>(value + 1) : value;
}

// Comparisons: mutant N moves the border, N + 1 says the opposite. Those without a border have N alone, the opposite.
#define UB_MUT_COMPARE(name, op, first, second)                        \
  template <uint32_t N>                                                \
  struct name {};                                                      \
  template <uint32_t N, class A>                                       \
  struct name##_left {                                                 \
    const A& a;                                                        \
  };                                                                   \
  template <uint32_t N, class A>                                       \
  UB_MUT_INLINE name##_left<N, A> operator op(const A& a, name<N>) {   \
    return {a};                                                        \
  }                                                                    \
  template <uint32_t N, class A, class B>                              \
  UB_MUT_INLINE bool operator op(name##_left<N, A> left, const B& b) { \
    const bool right = left.a op b;                                    \
    if (std::is_constant_evaluated()) return right;                    \
    if (armed[N] != 0) {                                               \
      const bool wrong = left.a first b;                               \
      if (fire(N, wrong != right)) return wrong;                       \
    }                                                                  \
    second return right;                                               \
  }
#define UB_MUT_OPPOSITE \
  if (ask(N + 1, true)) return !right;

UB_MUT_COMPARE(lt, <, <=, UB_MUT_OPPOSITE)
UB_MUT_COMPARE(le, <=, <, UB_MUT_OPPOSITE)
UB_MUT_COMPARE(gt, >, >=, UB_MUT_OPPOSITE)
UB_MUT_COMPARE(ge, >=, >, UB_MUT_OPPOSITE)
UB_MUT_COMPARE(eq, ==, !=, )
UB_MUT_COMPARE(ne, !=, ==, )

// Arithmetic: mutant N takes the other operator.
#define UB_MUT_ARITHMETIC(name, op, other)                             \
  template <uint32_t N>                                                \
  struct name {};                                                      \
  template <uint32_t N, class A>                                       \
  struct name##_left {                                                 \
    const A& a;                                                        \
  };                                                                   \
  template <uint32_t N, class A>                                       \
  UB_MUT_INLINE name##_left<N, A> operator op(const A& a, name<N>) {   \
    return {a};                                                        \
  }                                                                    \
  template <uint32_t N, class A, class B>                              \
  UB_MUT_INLINE auto operator op(name##_left<N, A> left, const B& b) { \
    auto right = left.a op b;                                          \
    if (std::is_constant_evaluated()) return right;                    \
    if (armed[N] != 0) {                                               \
      decltype(right) wrong = left.a other b;                          \
      if (fire(N, !(wrong == right))) return wrong;                    \
    }                                                                  \
    return right;                                                      \
  }

UB_MUT_ARITHMETIC(plus, +, -)
UB_MUT_ARITHMETIC(minus, -, +)
UB_MUT_ARITHMETIC(times, *, +)
UB_MUT_ARITHMETIC(over, /, *)
UB_MUT_ARITHMETIC(modulo, %, /)
UB_MUT_ARITHMETIC(bit_and, &, |)
UB_MUT_ARITHMETIC(bit_or, |, &)

// `a += b` becomes `a += add<17>{} += b`, which is read from the right.
#define UB_MUT_ASSIGN(name, op, other)                           \
  template <uint32_t N, class B>                                 \
  struct name##_right {                                          \
    const B& b;                                                  \
  };                                                             \
  template <uint32_t N>                                          \
  struct name {                                                  \
    template <class B>                                           \
    UB_MUT_INLINE name##_right<N, B> operator op(const B& b) {   \
      return {b};                                                \
    }                                                            \
  };                                                             \
  template <class A, uint32_t N, class B>                        \
  UB_MUT_INLINE A& operator op(A& a, name##_right<N, B> right) { \
    if (on(N))                                                   \
      a other right.b;                                           \
    else                                                         \
      a op right.b;                                              \
    return a;                                                    \
  }

UB_MUT_ASSIGN(add, +=, -=)
UB_MUT_ASSIGN(subtract, -=, +=)
UB_MUT_ASSIGN(join, |=, &=)
UB_MUT_ASSIGN(meet, &=, |=)

}  // namespace ub::mut
