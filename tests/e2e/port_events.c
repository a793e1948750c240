/* SPDX-License-Identifier: Apache-2.0 */
/* Prints what asynchronous events say of ports, with the state that the device shows then. With an argument: waits
 * until the first port is down. */
#include <stdio.h>
#include <time.h>
#include <urma_api.h>

static int fail(const char* what) {
  fprintf(stderr, "port_events: %s fails\n", what);
  return 1;
}

static int wait_until_down(urma_device_t* device) {
  urma_device_attr_t attr;
  do {
    struct timespec pause = {0, 10000000};
    nanosleep(&pause, NULL);
    if (urma_query_device(device, &attr) != URMA_SUCCESS) return fail("urma_query_device");
  } while (attr.port_attr[0].state != URMA_PORT_DOWN);
  printf("down\n");
  return 0;
}

int main(int argc, char** argv) {
  (void)argv;
  if (urma_init(NULL) != URMA_SUCCESS) return fail("urma_init");
  int count = 0;
  urma_device_t** devices = urma_get_device_list(&count);
  if (count == 0) return fail("urma_get_device_list");
  urma_device_t* device = devices[0];
  urma_free_device_list(devices);
  if (argc > 1) return wait_until_down(device);
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
