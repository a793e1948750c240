/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that uses every helper header, with the names, the order of arguments and the types that programs of UMDK
 * use (URMA API 0.9, 10). Compiled only, as C and as C++; test_layout.cc tests what they do.
 */
#include <ub_barrier.h>
#include <ub_bitmap.h>
#include <ub_dstring.h>
#include <ub_get_clock.h>
#include <ub_hash.h>
#include <ub_hmap.h>
#include <ub_list.h>
#include <ub_perf_cycle.h>
#include <ub_util.h>

#define PORTS 130

struct port {
  struct ub_list link;
  struct ub_hmap_node node;
  uint32_t number;
};

/* ub_util.h: bits */
unsigned long last_port(void);
unsigned long last_port(void) {
  unsigned long used[BITS_TO_LONGS(PORTS)];
  unsigned long bit, last = 0;
  uint32_t number = 7;
  bitmap_zero(PORTS, used);
  set_bit(number, used);
  set_bit(PORTS - 1, used);
  clear_bit(0, used);
  for_each_set_bit(bit, used, PORTS) last = bit;
  return test_bit(number, used) ? last : ub_find_next_zero_bit(used, PORTS, ub_find_first_zero_bit(used, PORTS));
}

/* ub_util.h: the rest */
int parse(const char* text);
int parse(const char* text) {
  static const struct str_int modes[] = {{(char*)"rm", 1}, {(char*)"rc", 2}};
  uint8_t u8 = 0;
  uint16_t u16 = 0;
  uint32_t u32 = 0;
  uint64_t u64 = 0;
  int number = 0, mode = 0;
  bool yes = false;
  void* pages = ub_hugemalloc(ROUND_UP(100, 64), UB_HUGE_PAGE_SIZE_ANY, NULL);
  int failed = ub_str_to_u8(text, &u8) | ub_str_to_u16(text, &u16) | ub_str_to_u32(text, &u32) |
               ub_str_to_u64(text, &u64) | ub_str_to_int(text, &number) | ub_str_to_bool(text, &yes) |
               ub_hex_str_to_u64(text, &u64) | get_int_from_string(modes, ARRAY_SIZE(modes), text, &mode) |
               ub_hugefree(pages, 100);
  if (UB_UNLIKELY(failed != 0)) (void)fprintf(stderr, "%s: %s\n", UB_SOURCE_LOCATOR, ub_strerror(failed));
  UB_ASSERT(ub_is_pow2(ub_rightmost_1bit(12)));
  return MAX(MIN(number, mode), (int)ub_count_1bits(gethrtime_epoch()));
}

/* ub_list.h, ub_hash.h, ub_hmap.h */
uint32_t sum_of_ports(struct port* ports, size_t count);
uint32_t sum_of_ports(struct port* ports, size_t count) {
  struct ub_list list = UB_LIST_INITIALIZER(&list);
  struct ub_hmap map;
  struct port *port, *next;
  uint32_t sum = 0;
  size_t i;
  if (ub_hmap_init(&map, 16) != 0) return 0;
  for (i = 0; i < count; i++) {
    ub_list_push_back(&list, &ports[i].link);
    ub_hmap_insert(&map, &ports[i].node, ub_hash_int(ports[i].number, 0));
  }
  UB_LIST_FOR_EACH(port, link, &list) sum += port->number;
  UB_HMAP_FOR_EACH_WITH_HASH(port, node, ub_hash_int(7, 0), &map) sum += port->number;
  UB_HMAP_FOR_EACH(port, node, &map) sum += port->number;
  UB_LIST_FOR_EACH_SAFE(port, next, link, &list) {
    (void)ub_list_remove(&port->link);
    ub_hmap_remove(&map, &port->node);
  }
  ub_hmap_destroy(&map);
  return sum + ub_hash_string("ports", ub_hash_bytes(ports, count, 0));
}

/* ub_bitmap.h, ub_dstring.h */
int report(struct ub_dstring* text);
int report(struct ub_dstring* text) {
  unsigned long idx = 0;
  ub_bitmap_t* bitmap = ub_bitmap_alloc(PORTS);
  if (bitmap == NULL) return -ENOMEM;
  if (ub_bitmap_alloc_idx(bitmap, &idx) == 0 && ub_bitmap_is_set(bitmap, idx)) (void)ub_bitmap_free_idx(bitmap, idx);
  ub_bitmap_free(bitmap);
  return ub_dstring_put_cstr(text, "port ") | ub_dstring_put_format(text, "%lu", idx) | ub_dstring_put_char(text, '\n');
}

/* ub_perf_cycle.h, ub_get_clock.h, ub_barrier.h */
double time_of(volatile int* flag);
double time_of(volatile int* flag) {
  ub_perf_cycle_t perf;
  ub_perf_cycle_reset(&perf);
  ub_perf_cycle_begin(&perf);
  wmb();
  *flag = 1;
  rmb();
  wc_wmb();
  dmb(ish);
  ub_smp_mb();
  ub_compiler_barrier();
  ub_perf_cycle_end(&perf);
  return ub_perf_cycle_average_ns(&perf) + (double)get_cycles() / get_cpu_mhz(false);
}
