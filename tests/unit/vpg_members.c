/* Who belongs to a network, and invitations: vpg/peer/members.c, invitation.c. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "tests/unit/unit.h"
#include "vpg/peer/invitation.h"
#include "vpg/peer/members.h"

static struct member member(int key, const char *nick, uint64_t since, uint64_t revoked)
{
	struct member m = { .since = since, .revoked = revoked };

	memset(m.key, key, KEY_BYTES);
	snprintf(m.nick, sizeof m.nick, "%s", nick);
	return m;
}

static void test_learn(void)
{
	struct member a = member(1, "A", 10, 0), b = member(2, "B", 11, 0);
	struct member c = member(3, "A", 12, 0);
	struct member gone = member(1, "A", 10, 99);
	struct members all = { 0 };

	CU_ASSERT_EQUAL(members_state(&all, a.key), MEMBER_UNKNOWN);
	CU_ASSERT_EQUAL(members_learn(&all, &a), 1);
	CU_ASSERT_EQUAL(members_learn(&all, &a), 0);
	CU_ASSERT_EQUAL(members_learn(&all, &b), 1);
	CU_ASSERT_EQUAL(members_learn(&all, &c), 1);
	CU_ASSERT_EQUAL(members_state(&all, a.key), MEMBER_GOOD);
	CU_ASSERT_EQUAL(members_state(&all, c.key), MEMBER_NICK_TAKEN);
	CU_ASSERT_EQUAL(members_learn(&all, &gone), 1);
	CU_ASSERT_EQUAL(members_learn(&all, &a), 0);	/* revoked stays revoked */
	CU_ASSERT_EQUAL(members_state(&all, a.key), MEMBER_REVOKED);
	CU_ASSERT_EQUAL(members_state(&all, c.key), MEMBER_GOOD);
	CU_ASSERT_PTR_EQUAL(members_of_nick(&all, "A"), members_of_key(&all, c.key));
	CU_ASSERT_PTR_NULL(members_of_nick(&all, "C"));
	members_free(&all);
}

/* Two lists learn of each other in any order, and are the same then. */
static void test_order(void)
{
	struct member a = member(1, "A", 5, 0), b = member(2, "A", 5, 0);
	struct members x = { 0 }, y = { 0 };

	members_learn(&x, &a), members_learn(&x, &b);
	members_learn(&y, &b), members_learn(&y, &a);
	CU_ASSERT_EQUAL(members_state(&x, a.key), MEMBER_GOOD);
	CU_ASSERT_EQUAL(members_state(&y, a.key), MEMBER_GOOD);
	CU_ASSERT_EQUAL(members_state(&x, b.key), MEMBER_NICK_TAKEN);
	CU_ASSERT_EQUAL(members_state(&y, b.key), MEMBER_NICK_TAKEN);
	members_free(&x);
	members_free(&y);
}

/* Two lists of the same members have one digest, whenever and wherever each was revoked. */
static void test_digest(void)
{
	struct member a = member(1, "A", 5, 0), b = member(2, "B", 6, 0);
	struct member b_gone = member(2, "B", 6, 70), b_gone_too = member(2, "B", 6, 80);
	struct members x = { 0 }, y = { 0 };

	CU_ASSERT_EQUAL(members_digest(&x), members_digest(&y));
	members_learn(&x, &a);
	CU_ASSERT_NOT_EQUAL(members_digest(&x), members_digest(&y));
	members_learn(&x, &b);
	members_learn(&y, &b), members_learn(&y, &a);
	CU_ASSERT_EQUAL(members_digest(&x), members_digest(&y));
	members_learn(&x, &b_gone);
	CU_ASSERT_NOT_EQUAL(members_digest(&x), members_digest(&y));
	members_learn(&y, &b_gone_too);
	CU_ASSERT_EQUAL(members_digest(&x), members_digest(&y));
	members_free(&x);
	members_free(&y);
}

/* News from one peer of n reaches all within so many steps, and each tells so many others. */
static void test_news(void)
{
	enum { MOST = 130 };

	CU_ASSERT_EQUAL(members_rounds(0), 0);
	for (size_t n = 1; n <= MOST; n++) {
		bool has[MOST] = { false }, next[MOST] = { false };
		size_t all = 0;

		has[n / 3] = next[n / 3] = true;
		for (unsigned step = 0; step < members_rounds(n); step++) {
			for (size_t at = 0; at < n; at++)
				for (unsigned i = 0; has[at] && i < members_rounds(n); i++)
					next[members_target(at, n, i)] = true;
			memcpy(has, next, sizeof has);
		}
		for (size_t at = 0; at < n; at++)
			all += has[at];
		CU_ASSERT_EQUAL(all, n);
	}
	CU_ASSERT_EQUAL(members_rounds(1), 0);
	CU_ASSERT_EQUAL(members_rounds(100), 7);
}

static void test_full(void)
{
	struct members all = { 0 };

	for (int i = 0; i <= MEMBERS_MAX; i++) {
		struct member m = member(0, "x", 1, 0);

		memcpy(m.key, &i, sizeof i);
		CU_ASSERT_EQUAL(members_learn(&all, &m), i < MEMBERS_MAX ? 1 : -ENOSPC);
	}
	members_free(&all);
}

static void test_lines(void)
{
	struct member m = member(0xa7, "tuba", 1700000000, 3), n;
	char line[160];

	CU_ASSERT(member_print_line(&m, line, sizeof line) < (int)sizeof line);
	line[strlen(line) - 1] = 0;
	CU_ASSERT_EQUAL(member_read_line(&n, line), 0);
	CU_ASSERT(!memcmp(n.key, m.key, KEY_BYTES) && !strcmp(n.nick, "tuba") &&
		  n.since == m.since && n.revoked == 3);
	CU_ASSERT_EQUAL(member_read_line(&n, ""), -EPROTO);
	CU_ASSERT_EQUAL(member_read_line(&n, "a7 tuba 1 0"), -EPROTO);
	line[0] = 'A';
	CU_ASSERT_EQUAL(member_read_line(&n, line), -EPROTO);
	line[0] = 'a';
	strcat(line, " x");
	CU_ASSERT_EQUAL(member_read_line(&n, line), -EPROTO);
}

static void test_invitation(void)
{
	struct invitation i = { .expires = 1ull << 40, .port = 28301, .n_hosts = 2,
				.hosts = { "192.0.2.7", "host.example.org" } }, back;
	char text[INVITATION_TEXT], damaged[INVITATION_TEXT];

	memset(i.key, 0x5a, KEY_BYTES);
	memset(i.token, 0xfe, TOKEN_BYTES);
	CU_ASSERT_EQUAL(invitation_print(&i, text), 0);
	CU_ASSERT_EQUAL(invitation_read(&back, text), 0);
	CU_ASSERT(!memcmp(&i, &back, sizeof i));
	for (size_t at = 0; text[at]; at++) {	/* each character counts, but for the zeros */
		strcpy(damaged, text);
		damaged[at] = damaged[at] == 'x' ? 'y' : 'x';
		if (!invitation_read(&back, damaged))
			CU_ASSERT(!text[at + 3] || !memcmp(&i, &back, sizeof i));
		damaged[at] = 0;
		CU_ASSERT_EQUAL(invitation_read(&back, damaged), -EPROTO);
	}
	CU_ASSERT_EQUAL(invitation_read(&back, "vmp-peer:AAAA"), -EPROTO);
	CU_ASSERT_EQUAL(invitation_read(&back, "vmp-peer:===="), -EPROTO);
	i.n_hosts = INVITATION_ADDRESSES;
	for (unsigned h = 0; h < i.n_hosts; h++)
		memset(i.hosts[h], 'h', INVITATION_HOST - 1);
	CU_ASSERT_EQUAL(invitation_print(&i, text), 0);
	CU_ASSERT_EQUAL(invitation_read(&back, text), 0);
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "members are learned, and revoked", test_learn },
		{ "in any order", test_order },
		{ "a digest", test_digest },
		{ "news", test_news },
		{ "a full list", test_full },
		{ "lines of the file", test_lines },
		{ "invitations", test_invitation },
		UNIT_END
	};

	return UNIT_RUN("vpg_members", tests);
}
