/* phnx_cluster.h - for the files of phnx_cluster; nobody else includes it. */
#ifndef PHNX_CLUSTER_H
#define PHNX_CLUSTER_H

#include <CUnit/Basic.h>
#include "tests/sim/phnx_sim.h"

enum { SPACE = 1024 };
/* tardy_us: routing messages are held for so long at most (sim_tardy()) */
extern uint64_t seed, tardy_us;

/* returns whether all nodes of a group know all others, and agree on them */
bool converged(struct sim *s);
bool all_direct(struct sim *s);		/* every node has a link to every other node */
void assume(struct sim *s, int node, ph_vp_t lo, ph_vp_t hi);
void release(struct sim *s, int node, ph_vp_t lo, ph_vp_t hi);
void share_out(struct sim *s);

/* phnx_letters.c: numbered messages from every node to random virtual nodes, and what becomes of
 * them */
void start_traffic(struct sim *s);
void send_one(struct sim *s, int from);
void receive_all(struct sim *s, int node);
bool all_received(struct sim *s);
void end_traffic(struct sim *s);	/* checks that each has arrived once, and in order */

void add_letters(CU_pSuite suite);
void add_losses(CU_pSuite suite);
void add_moves(CU_pSuite suite);
void add_ends(CU_pSuite suite);
void add_letters_tardily(CU_pSuite suite);
void add_moves_tardily(CU_pSuite suite);

#endif
