/* The second program of appendix B of K. Kaneda's thesis (2006), as printed there: three
 * processes forward HELLO messages while two of them join and leave.  Run it in this folder: it
 * reads the file `machines`, and runs until it is stopped. */
#include <stdio.h>
#include <assert.h>
#include <unistd.h>
#include "phnx/phnx.h"

/* kind of message */
enum kind {
    HELLO, JOIN_REQUEST, JOIN_RESPONSE, LEAVE_REQUEST, LEAVE_RESPONSE
};

/* message data structure */
struct msg {
    enum kind kind;
    ph_vp_t sender; /* for JOIN_REQUEST and LEAVE_REQUEST */
    ph_vp_t lower, upper; /* for JOIN_RESPONSE and LEAVE_REQUEST */
};
typedef struct msg * msg_t;
/* ph_assume_vps() with pretty print */
void assume_vps(ph_vps_t vps) {
    ph_vps_t old, new;

    old = ph_get_assumed_vps();
    ph_assume_vps(vps);
    new = ph_get_assumed_vps();

    printf("\t[%lld, %lld) ---> [%lld, %lld)\n",
        ph_vps_get_lower_bound(old), ph_vps_get_upper_bound(old),
        ph_vps_get_lower_bound(new), ph_vps_get_upper_bound(new));

    ph_vps_destroy(old);
    ph_vps_destroy(new);
}

/* ph_release_vps() with pretty print */
void release_vps(ph_vps_t vps) {
    ph_vps_t old, new;

    old = ph_get_assumed_vps();
    ph_release_vps(vps);
    new = ph_get_assumed_vps();

    printf("\t[%lld, %lld) ---> [%lld, %lld)\n",
          ph_vps_get_lower_bound(old), ph_vps_get_upper_bound(old),
          ph_vps_get_lower_bound(new), ph_vps_get_upper_bound(new));

    ph_vps_destroy(old);
    ph_vps_destroy(new);
}
void send_join_request(void) {
    ph_vp_t dest;
    struct msg m;

    dest = ph_get_random_vp();
    m.kind = JOIN_REQUEST;
    m.sender = ph_get_resource_name();
    printf("(%d)\tsends JOIN_REQUEST to %lld.\n", getpid(), dest);
    ph_send(dest, (void *)&m, sizeof(struct msg), PH_MSG_ANY_TAG);
}

void receive_join_response(void) {
    ph_vps_t vps;
    ph_msg_t x;
    msg_t m;

    x = ph_rcv(PH_MSG_ANY_TAG);
    m = (msg_t)x->body;
    assert(m->kind == JOIN_RESPONSE);

    printf("(%d)\treceives JOIN_RESPONSE.\n", getpid());
    printf("(%d)\ttakes over [%lld, %lld).\n", getpid(),
        m->lower, m->upper);
    vps = ph_vps_create_range(m->lower, m->upper);
    assume_vps(vps);
    ph_vps_destroy(vps);
    ph_msg_destroy(x);
}

void join(void) {
    send_join_request();
    receive_join_response();
}
ph_vp_t get_adjacent_vp(ph_vps_t vps) {
    ph_vp_t l = ph_vps_get_lower_bound(vps);
    ph_vp_t u = ph_vps_get_upper_bound(vps);
    return (l == PH_VP_LOWER_BOUND) ? u : (l - 1LL);
}

void send_leave_request(ph_vp_t dest, ph_vps_t vps) {
    struct msg m;

    m.kind = LEAVE_REQUEST;
    m.sender = ph_get_resource_name();
    m.lower = ph_vps_get_lower_bound(vps);
    m.upper = ph_vps_get_upper_bound(vps);
    printf("(%d)\tsends LEAVE_REQUEST to %lld.\n", getpid(), dest);
    ph_send(dest, (void *)&m, sizeof(struct msg), PH_MSG_ANY_TAG);
}

void receive_leave_response(void) {
    ph_msg_t x;
    msg_t     m;

    x = ph_rcv(PH_MSG_ANY_TAG);
    m = (msg_t)x->body;
    assert(m->kind == LEAVE_RESPONSE);
    printf("(%d)\treceives LEAVE_RESPONSE\n", getpid());
    ph_msg_destroy(x);
}

void leave(void) {
    ph_vps_t vps = ph_get_assumed_vps();
    ph_vp_t dest = get_adjacent_vp(vps);
    printf("(%d)\tgives [%lld, %lld) to %lld.\n", getpid(),
            ph_vps_get_lower_bound(vps), ph_vps_get_upper_bound(vps), dest);
    release_vps(vps);
    send_leave_request(dest, vps);
    ph_vps_destroy(vps);
    receive_leave_response();
}
void send_hello(void) {
    ph_vp_t  dest = ph_get_random_vp();
    struct msg m;

    m.kind = HELLO;
    printf("(%d)\tsends HELLO to %lld.\n", getpid(), dest);
    ph_send(dest, (void *)&m, sizeof(struct msg), PH_MSG_ANY_TAG);
}

ph_vps_t get_half_of_assumed_vps(void) {
    ph_vps_t my_vps = ph_get_assumed_vps();
    ph_vp_t  l      = ph_vps_get_lower_bound(my_vps);
    ph_vp_t  u      = ph_vps_get_upper_bound(my_vps);
    ph_vps_t vps    = ph_vps_create_range(l, l + (u - l) / 2);
    ph_vps_destroy(my_vps);
    return vps;
}

void send_join_response(ph_vp_t sender, ph_vps_t vps) {
    struct msg m;

    m.kind = JOIN_RESPONSE;
    m.lower = ph_vps_get_lower_bound(vps);
    m.upper = ph_vps_get_upper_bound(vps);
    ph_send(sender, (void *)&m, sizeof(struct msg), PH_MSG_ANY_TAG);
}

void send_leave_response(ph_vp_t sender) {
    struct msg m;

    m.kind = LEAVE_RESPONSE;
    ph_send(sender, (void *)&m, sizeof(struct msg), PH_MSG_ANY_TAG);
}

void main_loop(int nhellos) {
    int n = 0;
    while ((nhellos == -1) || (n < nhellos)) {
        ph_msg_t x = ph_rcv(PH_MSG_ANY_TAG);
        msg_t m = (msg_t)x->body;
        switch (m->kind) {
        case HELLO:
            printf("(%d)\treceives HELLO.\n", getpid());
            sleep(1);
            send_hello();
            n++;
            break;
        case JOIN_REQUEST: {
            ph_vps_t vps = get_half_of_assumed_vps();

            printf("(%d)\treceives JOIN_REQUEST.\n", getpid());
            printf("(%d)\tgives [%lld, %lld) to %lld.\n", getpid(),
                ph_vps_get_lower_bound(vps),
                ph_vps_get_upper_bound(vps), m->sender);
            release_vps(vps);
            send_join_response(m->sender, vps);
            ph_vps_destroy(vps);
            break; }
        case LEAVE_REQUEST: {
            ph_vps_t vps;

            printf("(%d)\treceives LEAVE_REQUEST.\n", getpid());
            printf("(%d)\ttakes over [%lld, %lld) from %lld.\n",
                getpid(), m->lower, m->upper, m->sender);
            vps = ph_vps_create_range(m->lower, m->upper);
            assume_vps(vps);
            ph_vps_destroy(vps);

            send_leave_response(m->sender);
            break; }
        }
        ph_msg_destroy(x);
    }
}
void spawn_initiator(int nhellos) {
    ph_vps_t vps;

    if (fork() != 0) { return; }

    ph_init(0LL, 32LL, "machines", NULL, NULL, NULL);
    printf("(%d)\tstarts.\n"
          "\tresource vp = %lld\n", getpid(), ph_get_resource_name());

    /* assume all the virtual node names */
    vps = ph_vps_create_range(PH_VP_LOWER_BOUND, PH_VP_UPPER_BOUND);
    assume_vps(vps);
    ph_vps_destroy(vps);

    send_hello();
    main_loop(nhellos);
    leave();
    ph_finalize(NULL, -1);
    printf("(%d)\texits.\n", getpid());
    exit(0);
}

void spawn_slave(int nhellos) {
    if (fork() != 0) { return; }

    ph_init(0LL, 32LL, "machines", NULL, NULL, NULL);
    printf("(%d)\tstarts.\n\tresource vp = %lld\n", getpid(),
          ph_get_resource_name());

    join();
    main_loop(nhellos);
    leave();
    ph_finalize(NULL, -1);
    printf("(%d)\texits.\n", getpid());
    exit(0);
}

int main(void) {
    spawn_initiator(3);
    sleep(1);

    spawn_slave(3);
    sleep(1);

    spawn_slave(-1);
    sleep(1);

    while (1) { sleep(10); }
    return 0;
}
