/* carry.h - `vmp-peer connect PORT`: standard input and output become a TCP connection to a port of
 * this computer's loopback interface.  `vmp rsh -W` has the daemon of another computer start it. */
#ifndef VPG_CARRY_H
#define VPG_CARRY_H

/* Returns the exit status when one of the two sides has ended. */
int carry_connection(unsigned port);

#endif
