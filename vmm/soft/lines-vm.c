// SPDX-License-Identifier: GPL-2.0-only
/* The memory model's parts: made from the cost model and the topology, emptied, taken down. */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/log.h"
#include "soft/line-model.h"

static void lines_costs(struct soft_lines *ls)
{
	const struct cost_model *m = &ls->svm->cost;
	const struct soft_vm *svm = ls->svm;

	ls->latency[LINE_FROM_L2] = cost(m, l2_hit);
	ls->latency[LINE_FROM_L3] = soft_units_of_ps(svm, cost(m, l3_hit));
	ls->latency[LINE_FROM_SIBLING] = soft_units_of_ps(svm, cost(m, line_sibling));
	ls->latency[LINE_FROM_SOCKET] = soft_units_of_ps(svm, cost(m, line_socket_clean));
	ls->latency[LINE_FROM_REMOTE] = soft_units_of_ps(svm, cost(m, line_remote_clean));
	ls->latency[LINE_FROM_DRAM_LOCAL] = soft_units_of_ps(svm, cost(m, dram_local));
	ls->latency[LINE_FROM_DRAM_REMOTE] = soft_units_of_ps(svm, cost(m, dram_remote));
	ls->line_socket_dirty = soft_units_of_ps(svm, cost(m, line_socket_dirty));
	ls->line_remote_dirty = soft_units_of_ps(svm, cost(m, line_remote_dirty));
	ls->stream[LINE_FROM_L2] = soft_units_of_ps(svm, cost(m, stream_l2));
	ls->stream[LINE_FROM_L3] = soft_units_of_ps(svm, cost(m, stream_l3));
	ls->stream[LINE_FROM_SIBLING] = ls->stream[LINE_FROM_SOCKET] = ls->stream[LINE_FROM_L3];
	ls->stream[LINE_FROM_DRAM_LOCAL] = soft_units_of_ps(svm, cost(m, stream_dram));
	ls->stream[LINE_FROM_REMOTE] = soft_units_of_ps(svm, cost(m, stream_remote));
	ls->stream[LINE_FROM_DRAM_REMOTE] = ls->stream[LINE_FROM_REMOTE];
	ls->hop = soft_units_of_ps(svm, cost(m, line_hop));
	ls->dram_line = soft_units_of_ps(svm, cost(m, dram_line));
	ls->link_line = soft_units_of_ps(svm, cost(m, link_line));
	ls->l3_line = soft_units_of_ps(svm, cost(m, l3_line));
	ls->jitter = soft_units_of_ps(svm, cost(m, jitter));
	ls->cpi = cost(m, cpi);
	ls->cpi_shared = ls->cpi * cost(m, smt_slowdown) / COST_RATIO;
	ls->lock = cost(m, lock);
	ls->fence = cost(m, fence);
	ls->pause = cost(m, pause);
	ls->links = (u32)cost(m, socket_links);
	ls->window = (u32)cost(m, miss_window);
	ls->misses = (u32)cost(m, misses);
}

static int lines_refuse(const struct topology *topo)
{
	if (topo->sockets <= LINE_MAX_SOCKETS && topo->sockets * topo->cores <= LINE_MAX_CORES &&
	    topo->threads <= LINE_MAX_THREADS)
		return 0;
	fb_err("soft: a cost model with [memory] goes to %u sockets, %u cores and %u threads a core; topology %ux%ux%u has more",
	       LINE_MAX_SOCKETS, LINE_MAX_CORES, LINE_MAX_THREADS, topo->sockets, topo->cores, topo->threads);
	return -EINVAL;
}

int soft_lines_create(struct soft_vm *svm)
{
	const struct topology *topo = &svm->vm->topo;
	const struct cost_model *m = &svm->cost;
	struct soft_lines *ls;
	u32 i;

	if (lines_refuse(topo))
		return -EINVAL;
	ls = svm->lines = g_new0(struct soft_lines, 1);
	ls->svm = svm;
	ls->nr_sockets = topo->sockets;
	ls->nr_cores = topo->sockets * topo->cores;
	ls->exact = ls->nr_cores <= LINE_CORE_BITS;
	lines_costs(ls);
	/* A quarter: what the grain of the turns adds to a hand-over stays small beside it. */
	svm->vm->near_ns = MAX(cost(m, line_sibling) / 4000, 1);
	ls->core = g_new0(struct soft_core, ls->nr_cores);
	ls->queue = g_new0(struct line_queue, topo->nr_cpus);
	for (i = 0; i < ls->nr_cores; i++) {
		struct soft_core *core = &ls->core[i];

		core->id = i;
		core->socket = i / topo->cores;
		core->bit = BIT_ULL(i % LINE_CORE_BITS);
		ls->socket[core->socket].cores |= core->bit;
		line_cache_create(&core->l1, cost(m, cache_l1_kib), cost(m, cache_l1_ways));
		line_cache_create(&core->l2, cost(m, cache_l2_kib), cost(m, cache_l2_ways));
	}
	for (i = 0; i < ls->nr_sockets; i++)
		line_cache_create(&ls->socket[i].l3, cost(m, cache_l3_kib), cost(m, cache_l3_ways));
	return 0;
}

static size_t line_bytes(u64 lines)
{
	return ALIGN_UP(lines * sizeof(struct line), PAGE_SIZE);
}

void soft_lines_destroy(struct soft_vm *svm)
{
	struct soft_lines *ls = svm->lines;
	u32 i;

	if (!ls)
		return;
	for (i = 0; i < ls->nr_cores; i++) {
		line_cache_destroy(&ls->core[i].l1);
		line_cache_destroy(&ls->core[i].l2);
	}
	for (i = 0; i < ls->nr_sockets; i++)
		line_cache_destroy(&ls->socket[i].l3);
	if (ls->line)
		munmap(ls->line, line_bytes(ls->nr_lines));
	g_free(ls->core);
	g_free(ls->queue);
	g_free(ls);
	svm->lines = NULL;
}

/* As the page array: zeroes that cost nothing until they are used. */
int soft_lines_grow(struct soft_vm *svm, u64 pages)
{
	struct soft_lines *ls = svm->lines;
	u64 lines = pages * LINES_IN_PAGE;
	void *mem;
	int err;

	if (lines <= ls->nr_lines)
		return 0;
	if (lines >= UINT32_MAX) {
		fb_err("soft: a cost model with [memory] goes to %u GiB of RAM", (u32)((u64)UINT32_MAX * LINE_BYTES >> 30));
		return -EINVAL;
	}
	if (ls->line)
		mem = mremap(ls->line, line_bytes(ls->nr_lines), line_bytes(lines), MREMAP_MAYMOVE);
	else
		mem = mmap(NULL, line_bytes(lines), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			   -1, 0);
	if (mem == MAP_FAILED) {
		err = -errno;
		fb_err("soft: state of %llu lines: %s", (unsigned long long)lines, strerror(errno));
		return err;
	}
	ls->line = mem;
	ls->nr_lines = lines;
	return 0;
}

void soft_lines_attach(struct soft_cpu *c)
{
	const struct topology *topo = &c->svm->vm->topo;
	const struct topology_cpu *cpu = &topo->cpu[c->vcpu->id];
	struct soft_core *core = &c->svm->lines->core[cpu->socket * topo->cores + cpu->core];

	c->filter = g_new0(u32, LINE_NR_FILTER);
	c->core = core;
	c->thread = (u8)cpu->thread;
	core->node = cpu->node;
	core->state[core->nr_threads] = &c->vcpu->mp_state;
	c->place = (u8)core->nr_threads;
	core->thread[core->nr_threads++] = c;
}

void soft_lines_reset(struct soft_vm *svm)
{
	struct soft_lines *ls = svm->lines;
	u32 i, t;

	if (!ls)
		return;
	for (i = 0; i < ls->nr_cores; i++) {
		struct soft_core *core = &ls->core[i];

		line_cache_clear(&core->l1);
		line_cache_clear(&core->l2);
		memset(core->stream, 0, sizeof(core->stream));
		core->next_stream = 0;
		for (t = 0; t < core->nr_threads; t++) {
			core->thread[t]->turn = (struct line_turn){ 0 };
			core->thread[t]->lock_paid = 0;
			memset(core->thread[t]->filter, 0, LINE_NR_FILTER * sizeof(u32));
			core->thread[t]->window = (struct line_window){ 0 };
			core->thread[t]->stores = (struct line_stores){ 0 };
		}
	}
	for (i = 0; i < ls->nr_sockets; i++) {
		line_cache_clear(&ls->socket[i].l3);
		ls->socket[i].link_busy = 0;
	}
	memset(ls->node_busy, 0, sizeof(ls->node_busy));
	ls->nr_queues = 0;
	if (ls->line)
		madvise(ls->line, line_bytes(ls->nr_lines), MADV_DONTNEED);
}
