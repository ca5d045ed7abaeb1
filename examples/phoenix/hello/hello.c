/* The first program of appendix B of K. Kaneda's thesis (2006), as printed there: the child
 * sends HELLO to the parent.  Run it in this folder: it reads the file `machines`. */
#include <stdio.h>
#include <unistd.h>
#include "phnx/phnx.h"

int main(void) {
    pid_t pid;
    ph_vps_t vps;
    ph_msg_t msg;

    pid = fork();

    /*** Initialization ***/
    ph_init(0LL, 32LL, "machines", NULL, NULL, NULL);

    if (pid == 0) {
        /*** S E N D E R ***/

        /*** Node name mapping ***/
        vps = ph_vps_create_range(0LL, 16LL);
        ph_assume_vps(vps);
        ph_vps_destroy(vps);

        /*** Message transmission ***/
        ph_send(24LL, "HELLO", 6, PH_MSG_ANY_TAG);
    } else {
        /*** R E C E I V E R ***/

        /*** Node name mapping ***/
        vps = ph_vps_create_range(16LL, 32LL);
        ph_assume_vps(vps);
        ph_vps_destroy(vps);

        /*** Message receipt ***/
        msg = ph_recv(PH_MSG_ANY_TAG);
        printf("%s\n", (char *)msg->body);
        ph_msg_destroy(msg);
    }

    /*** Finalization ***/
    ph_finalize(NULL, -1);

    return 0;
}
