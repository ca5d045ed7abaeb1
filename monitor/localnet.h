/* localnet.h - the guest's frames without the I/O server: a monitor on its host has the socket to
 * vmp-net, too.
 *
 * A frame through the I/O server wakes the daemon, the I/O server and vmp-net, and its answer the
 * first two and the monitor.  Here the monitor of the CPU that sends wakes vmp-net alone.
 *
 * What finds no room in the socket goes to the I/O server, which waits for room; later frames
 * follow it there until it has been sent, so that none overtakes another.
 */
#ifndef MONITOR_LOCALNET_H
#define MONITOR_LOCALNET_H

#include "monitor/virtqueue.h"

/* Take over the socket; -1: there is none. */
void localnet_open(int fd);
/* Send the frame in this chain.  False: it is to be sent to the I/O server. */
bool localnet_send(const struct virtqueue_chain *chain, const struct virtqueue_memory *memory);

#endif
