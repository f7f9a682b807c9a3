// SPDX-License-Identifier: GPL-2.0-only
/*
 * KVM's binary statistics (Documentation/virt/kvm/api.rst, KVM_GET_STATS_FD):
 * header, descriptors, then the values, which are read anew each time.
 */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/log.h"
#include "kvm/kvm.h"

static bool read_at(int fd, void *buf, size_t len, u64 off)
{
	return pread(fd, buf, len, (off_t)off) == (ssize_t)len;
}

/* Scalars only: histograms (log and linear) of halt polling say nothing that our own do not. */
static bool stat_wanted(const struct kvm_stats_desc *d)
{
	u32 type = d->flags & KVM_STATS_TYPE_MASK;

	return d->size == 1 && (type == KVM_STATS_TYPE_CUMULATIVE || type == KVM_STATS_TYPE_INSTANT ||
				type == KVM_STATS_TYPE_PEAK);
}

int kvm_stats_open(struct kvm_stats *stats, int owner_fd)
{
	struct kvm_stats_header head;
	size_t stride;
	char *buf;
	u32 i;

	stats->fd = ioctl(owner_fd, KVM_GET_STATS_FD, NULL);
	if (stats->fd < 0)
		return 0;	/* before 5.14: these counters print n/a */
	if (!read_at(stats->fd, &head, sizeof(head), 0) || head.num_desc > 4096 || head.name_size > 1024)
		goto bad;
	stride = sizeof(struct kvm_stats_desc) + head.name_size;
	buf = g_malloc(stride * head.num_desc);
	if (!read_at(stats->fd, buf, stride * head.num_desc, head.desc_offset)) {
		g_free(buf);
		goto bad;
	}
	stats->data_offset = head.data_offset;
	stats->desc = g_new0(struct kvm_stat_name, head.num_desc);
	for (i = 0; i < head.num_desc; i++) {
		const struct kvm_stats_desc *d = (const void *)(buf + i * stride);
		struct kvm_stat_name *n = &stats->desc[stats->nr];

		if (!stat_wanted(d))
			continue;
		g_strlcpy(n->name, d->name, MIN(sizeof(n->name), head.name_size));
		n->offset = d->offset;
		n->gauge = (d->flags & KVM_STATS_TYPE_MASK) != KVM_STATS_TYPE_CUMULATIVE;
		stats->nr++;
	}
	g_free(buf);
	return 0;
bad:
	fb_warn("kvm: the statistics file has a form this VMM does not know; its counters print n/a");
	close(stats->fd);
	stats->fd = -1;
	return 0;
}

void kvm_stats_close(struct kvm_stats *stats)
{
	if (stats->fd >= 0)
		close(stats->fd);
	stats->fd = -1;
	g_free(stats->desc);
	stats->desc = NULL;
	stats->nr = 0;
}

static u64 stat_value(const struct kvm_stats *stats, u32 i)
{
	u64 value = 0;

	if (!read_at(stats->fd, &value, sizeof(value), stats->data_offset + stats->desc[i].offset))
		value = 0;
	return value;
}

int kvm_read_stats(struct vm *vm, GArray *out)
{
	struct kvm_vm *kvm = vm->engine_data;
	const struct kvm_vcpu *first = vm->vcpu[0]->engine;
	u32 i, cpu;

	for (i = 0; kvm->stats.fd >= 0 && i < kvm->stats.nr; i++) {
		struct engine_stat s = { .value = stat_value(&kvm->stats, i), .gauge = kvm->stats.desc[i].gauge };

		g_strlcpy(s.name, kvm->stats.desc[i].name, sizeof(s.name));
		g_array_append_val(out, s);
	}
	for (i = 0; first->stats.fd >= 0 && i < first->stats.nr; i++) {
		struct engine_stat s = { .gauge = first->stats.desc[i].gauge };

		g_strlcpy(s.name, first->stats.desc[i].name, sizeof(s.name));
		s.per_vcpu = g_new0(u64, vm->topo.nr_cpus);
		for (cpu = 0; cpu < vm->topo.nr_cpus; cpu++) {
			const struct kvm_vcpu *kv = vm->vcpu[cpu]->engine;

			if (kv->stats.fd >= 0 && kv->stats.nr == first->stats.nr)
				s.per_vcpu[cpu] = stat_value(&kv->stats, i);
			s.value += s.per_vcpu[cpu];
		}
		g_array_append_val(out, s);
	}
	return 0;
}
