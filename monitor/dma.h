/* dma.h - the monitor's part of bus-master DMA.
 *
 * Callers: monitor/rings.c.
 */
#ifndef MONITOR_DMA_H
#define MONITOR_DMA_H

#include "monitor/monitor.h"
#include "monitor/prd.h"

/* Serve a step, or a part of one, from the I/O server. */
void dma_step(struct monitor *m, const struct virtqueue_memory *memory, struct msg_dma step,
	      void *payload, uint32_t bytes);

#endif
