/* SPDX-License-Identifier: Apache-2.0 */
/* Prints what asynchronous events say of ports, with the state that the device shows then. */
#include <stdio.h>
#include <urma_api.h>

static int fail(const char* what) {
  fprintf(stderr, "port_events: %s fails\n", what);
  return 1;
}

int main(void) {
  if (urma_init(NULL) != URMA_SUCCESS) return fail("urma_init");
  int count = 0;
  urma_device_t** devices = urma_get_device_list(&count);
  if (count == 0) return fail("urma_get_device_list");
  urma_device_t* device = devices[0];
  urma_free_device_list(devices);
  urma_context_t* context = urma_create_context(device, 0);
  if (context == NULL) return fail("urma_create_context");
  printf("ready\n");
  fflush(stdout);
  for (;;) {
    urma_async_event_t event;
    urma_device_attr_t attr;
    if (urma_get_async_event(context, &event) != URMA_SUCCESS) return fail("urma_get_async_event");
    if (urma_query_device(device, &attr) != URMA_SUCCESS) return fail("urma_query_device");
    printf("event %d port %u state %d\n", event.event_type, event.element.port_id,
           attr.port_attr[event.element.port_id].state);
    fflush(stdout);
    urma_ack_async_event(&event);
  }
}
