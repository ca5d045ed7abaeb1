/* grid.h - the commands of the Virtual Private Grid (vpg/): programs beside vmp carry them out. */
#ifndef VMM_CLI_GRID_H
#define VMM_CLI_GRID_H

struct options;

/* Become vmp-peer, and vmp-sh, with the words that were typed; return the status if that fails. */
int grid_peer(const struct options *o);
int grid_shell(const struct options *o);

#endif
