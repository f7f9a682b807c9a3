// SPDX-License-Identifier: GPL-2.0-only
/*
 * Faults by page, vCPU and right. A vCPU waits for one page at a time, and for a few more if the guest's
 * interrupts fault, too, so a list is about as long as there are vCPUs.
 */
#include "kvm/fault-list.h"

static struct fault *fault_at(const struct fault_list *list, u32 i)
{
	return &g_array_index(list->faults, struct fault, i);
}

void fault_list_init(struct fault_list *list)
{
	*list = (struct fault_list){ .faults = g_array_new(FALSE, FALSE, sizeof(struct fault)) };
}

void fault_list_destroy(struct fault_list *list)
{
	g_array_free(list->faults, TRUE);
	list->faults = NULL;
}

void fault_list_turn(struct fault_list *list)
{
	list->turn++;
}

/* MISSING and MINOR both lack the mapping: the VMM may have written the page between two messages. */
static bool same_right(enum fault_kind a, enum fault_kind b)
{
	return (a == FAULT_WP) == (b == FAULT_WP);
}

/*
 * How long a fault that was served can be repeated. The answer takes the vCPU's messages that wait to be read
 * along; left are those read together with its own, and one that its thread was about to send just then. That is the
 * next one of the vCPU, since a thread sends one at a time; once it was seen, the fault is forgotten.
 */
enum fault_news fault_list_add(struct fault_list *list, struct fault *fault)
{
	enum fault_news news = FAULT_NEW;
	u32 i = 0;

	while (i < list->faults->len) {
		struct fault *f = fault_at(list, i);

		if (f->cpu != fault->cpu) {
			i++;
			continue;
		}
		if (f->page == fault->page && same_right(f->kind, fault->kind))
			news = f->served ? FAULT_SERVED : FAULT_WAITS;
		if (f->served && f->turn != list->turn)
			g_array_remove_index_fast(list->faults, i);
		else
			i++;
	}
	if (news == FAULT_NEW) {
		fault->number = ++list->last_number;
		fault->served = false;
		g_array_append_val(list->faults, *fault);
	}
	return news;
}

const struct fault *fault_list_waiting(const struct fault_list *list, u64 number)
{
	u32 i;

	for (i = 0; i < list->faults->len; i++)
		if (fault_at(list, i)->number == number)
			return fault_at(list, i)->served ? NULL : fault_at(list, i);
	return NULL;
}

const struct fault *fault_list_serve(struct fault_list *list, u64 page, enum fault_kind kind)
{
	u32 i;

	for (i = 0; i < list->faults->len; i++) {
		struct fault *f = fault_at(list, i);

		/* A mapping comes with all rights; the right to write is no mapping. */
		if (f->served || f->page != page || (kind == FAULT_WP && f->kind != FAULT_WP))
			continue;
		f->served = true;
		f->turn = list->turn;
		return f;
	}
	return NULL;
}

void fault_list_lowered(struct fault_list *list, u64 page, enum gpa_rights left)
{
	u32 i = 0;

	while (i < list->faults->len) {
		const struct fault *f = fault_at(list, i);

		if (f->page == page && f->served && (left == GPA_NONE || f->kind == FAULT_WP))
			g_array_remove_index_fast(list->faults, i);
		else
			i++;
	}
}
