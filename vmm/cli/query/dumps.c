/* dumps.c - `vmp regs` shows where each processor is; `vmp pages` shows which pages the hosts fetch
 * from each other.  Each ends when all answers are complete. */
#include "base/layout.h"
#include "vmm/cli/query/query_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "base/printable.h"
#include "vmm/cli/jsontext.h"
#include "vmm/cli/query/dumptext.h"
#include "vmm/cli/query/pagenames.h"

/* ---- regs ---- */

void dumps_start_regs(struct query *q)
{
	for (uint32_t cpu = 0; cpu < q->info.machine.cpus; cpu++) {
		struct msg_dump dump = { .cpu = cpu };

		client_send(&q->client, MSG_DUMP_REQUEST, VNODE_CPU(cpu), &dump, sizeof dump, NULL,
			    0);
	}
}

void dumps_on_regs(struct query *q, const struct message *m, const struct msg_dump *dump)
{
	size_t n = m->payload_bytes;
	char *grown;

	if (q->done || dump->cpu >= q->info.machine.cpus || q->dump_done[dump->cpu])
		return;
	if (n) {
		grown = realloc(q->dump[dump->cpu], q->dump_bytes[dump->cpu] + n + 1);
		if (!grown)
			die("no memory");
		q->dump[dump->cpu] = grown;
		memcpy(grown + q->dump_bytes[dump->cpu], m->payload, n);
		q->dump_bytes[dump->cpu] += n;
		grown[q->dump_bytes[dump->cpu]] = 0;
		return;
	}
	q->dump_done[dump->cpu] = true;
	q->dump_host[dump->cpu] = m->header.from_node;
	for (uint32_t cpu = 0; cpu < q->info.machine.cpus; cpu++)
		if (!q->dump_done[cpu])
			return;
	query_end(q, 0, "");
}

static void print_cpu_json(const struct query *q, uint32_t cpu, const char *text)
{
	printf("%s\n  {\"cpu\": %u, \"host\": %u, \"started\": %s, \"text\": ", cpu ? "," : "", cpu,
	       q->dump_host[cpu], *text ? "true" : "false");
	json_put_string(stdout, text);
	printf("}");
}

/* Prints a paragraph for each CPU, or with --json the same text as one string for each CPU.  A CPU
 * that the guest has not started yet has no registers that mean anything: it has sent no text. */
void dumps_print_regs(struct query *q)
{
	struct symbols symbols;

	pageheat_load_symbols(&symbols, q->info.kernel);
	if (q->o->json)
		printf("[");
	for (uint32_t cpu = 0; cpu < q->info.machine.cpus; cpu++) {
		char none[] = "", *text = q->dump[cpu] ? q->dump[cpu] : none;

		if (q->o->json) {
			print_cpu_json(q, cpu, text);
			continue;
		}
		printf("%s", cpu ? "\n" : "");
		printable_text(text, strlen(text));
		if (*text)
			dump_print(stdout, text, &symbols);
		else
			printf("cpu %u not started: the guest has not brought it up\n", cpu);
	}
	if (q->o->json)
		printf("\n]\n");
	pageheat_free_symbols(&symbols);
}

/* ---- pages ---- */

void dumps_start_pages(struct query *q)
{
	q->asks_pages = true;
	for (uint32_t node = 0; node < MAX_NODES; node++) {
		struct msg_pages pages = { .node = node };

		if (q->hosts.present >> node & 1)
			client_send(&q->client, MSG_PAGES_REQUEST, VNODE_DAEMON(node), &pages,
				    sizeof pages, NULL, 0);
	}
}

void dumps_pages_check(struct query *q)
{
	for (uint32_t node = 0; node < MAX_NODES; node++)
		if (q->hosts.present >> node & 1 && !q->node_done[node])
			return;
	query_end(q, 0, "");
}

void dumps_on_pages(struct query *q, const struct message *m, const struct msg_pages_here *pages)
{
	if (q->done || pages->node >= MAX_NODES)
		return;
	pageheat_add(&q->heat, m->payload, m->payload_bytes / sizeof(struct page_heat));
	q->synced += pages->synced;
	q->barrier_tells += pages->barrier_tells;
	q->node_done[pages->node] = true;
	dumps_pages_check(q);
}

/* Names the page by the kernel's symbols, or by what the guest uses it for now. */
static void name_page(const struct symbols *symbols, const struct pagenames *names, gfn_t gfn,
		      char *symbol, char *text, size_t bytes)
{
	pageheat_describe_frame(symbols, gfn, symbol, bytes);
	*text = 0;
	if (names && (!*symbol || *symbol == '('))
		pagenames_describe(names, gfn, text, bytes);
	if (!*text)
		snprintf(text, bytes, "%s", symbol);
}

static void print_page(const struct query *q, size_t i, const char *symbol, const char *what)
{
	const struct page_heat *page = &q->heat.page[i];

	if (!q->o->json) {
		printf("%10u  0x%08lx  %s\n", page->faults, gfn_to_gpa(page->gfn), what);
		return;
	}
	printf("%s\n  {\"physical\": \"0x%08lx\", \"requests\": %u, \"symbols\": ", i ? "," : "",
	       gfn_to_gpa(page->gfn), page->faults);
	json_put_string(stdout, symbol);
	printf(", \"what\": ");
	json_put_string(stdout, what);
	printf("}");
}

void dumps_print_pages(struct query *q)
{
	const struct pagenames_ram ram = {
		.context = q, .page = frames_page, .cpus = q->info.machine.cpus,
		.pages = ram_pages_of(q->info.machine.mem_mib),
	};
	struct pagenames *names = NULL;
	struct symbols symbols;
	char symbol[160], what[160];

	pageheat_load_symbols(&symbols, q->info.kernel);
	pageheat_sort(&q->heat);
	if (q->heat.n)
		names = pagenames_read(&ram, &symbols);
	if (q->o->json)
		printf("[");
	else
		printf("%10s  %-10s  %s\n", "requests", "physical", "what is there");
	for (size_t i = 0; i < q->heat.n && i < q->o->top; i++) {
		name_page(&symbols, names, q->heat.page[i].gfn, symbol, what, sizeof what);
		print_page(q, i, symbol, what);
	}
	if (q->o->json)
		printf("\n]\n");
	else if (!q->heat.n)
		printf("no page was asked for; a machine on one host has no need to\n");
	else
		printf("locked instructions and barriers ended the hold of pages %llu times; "
		       "counts of barriers told to other hosts: %llu\n",
		       (unsigned long long)q->synced, (unsigned long long)q->barrier_tells);
	pagenames_free(names);
	pageheat_free_symbols(&symbols);
}
