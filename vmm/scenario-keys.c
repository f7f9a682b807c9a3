// SPDX-License-Identifier: GPL-2.0-only
/*
 * The keys of a scenario: their names, defaults and values. docs/scenario.md
 * says what each means.
 */
#include "scenario-keys.h"

#include <asm/kvm_para.h>
#include <errno.h>
#include <string.h>

#include "base/nearest.h"
#include "core/inject.h"
#include "cost-change.h"

/* What the init in the guest has room for (guest-tests/init.c). */
#define KNOB_MAX	32u
#define KNOB_MAX_BYTES	31u	/* of a name and of a value */

static const char *const sections[] = { "vm", "guest", "run", "inject", "cost", "vary" };

/* Keys of issues that come later; known so that the message can say more than "unknown". */
static const char *const later_keys[] = {
	"guest.modules", "guest.vmlinux", "guest.system_map",
};

GPtrArray *scenario_split(const char *text, const char *separator)
{
	GPtrArray *parts = g_ptr_array_new_with_free_func(g_free);
	g_auto(GStrv) v = g_strsplit(text, separator, -1);

	for (char **p = v; *p; p++)
		g_ptr_array_add(parts, g_strdup(g_strstrip(*p)));
	return parts;
}

/* Values ----------------------------------------------------------------- */

static int parse_u64(const char *text, u64 min, u64 max, u64 *out, char **err)
{
	char *end;
	g_autoptr(GError) bad = NULL;

	if (g_str_has_prefix(text, "0x")) {
		errno = 0;
		*out = g_ascii_strtoull(text + 2, &end, 16);
		if (g_ascii_isxdigit(text[2]) && !*end && !errno && *out >= min && *out <= max)
			return 0;
	} else if (g_ascii_string_to_unsigned(text, 10, min, max, out, &bad)) {
		return 0;
	}
	if (max == UINT64_MAX)
		return scenario_fail(err,
				     "\"%s\" is not a whole number of at least %" G_GUINT64_FORMAT,
				     text, min);
	return scenario_fail(err,
			     "\"%s\" is not a whole number from %" G_GUINT64_FORMAT
			     " to %" G_GUINT64_FORMAT,
			     text, min, max);
}

/* The index of value in names, or -EINVAL with the nearest in *err. */
static int parse_choice(const char *value, const char *const *names, u32 nr, char **err)
{
	for (u32 i = 0; i < nr; i++)
		if (!strcmp(names[i], value))
			return i;

	const char *near = nearest_name(value, names, nr);
	g_autofree char *list = g_strdup(names[0]);

	for (u32 i = 1; i < nr; i++) {
		char *more = g_strdup_printf("%s, %s", list, names[i]);

		g_free(list);
		list = more;
	}
	return scenario_fail(err, "\"%s\" is none of %s%s%s%s", value, list,
			     near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

static int set_engine(struct scenario *s, const char *value, char **err)
{
	static const char *const names[] = {
		[ENGINE_AUTO] = "auto", [ENGINE_KVM] = "kvm", [ENGINE_SOFT] = "soft",
		[ENGINE_NESTED] = "nested", [ENGINE_QEMU] = "qemu", [ENGINE_LIBVIRT] = "libvirt",
	};
	int i = parse_choice(value, names, ARRAY_SIZE(names), err);

	if (i < 0)
		return i;
	s->engine = i;
	return 0;
}

static int set_topology(struct scenario *s, const char *value, char **err)
{
	return topology_parse(value, &s->sockets, &s->cores, &s->threads, err);
}

static int set_cpu_order(struct scenario *s, const char *value, char **err)
{
	static const char *const names[] = {
		[CPU_ORDER_SIBLINGS_LAST] = "siblings-last",
		[CPU_ORDER_SIBLINGS_ADJACENT] = "siblings-adjacent",
	};
	int i = parse_choice(value, names, ARRAY_SIZE(names), err);

	if (i < 0)
		return i;
	s->cpu_order = i;
	return 0;
}

static int set_memory(struct scenario *s, const char *value, char **err)
{
	return scenario_parse_size(value, &s->memory, err);
}

static int set_nodes(struct scenario *s, const char *value, char **err)
{
	u64 n = 0;

	if (strcmp(value, "auto") && parse_u64(value, 1, TOPOLOGY_MAX_NODES, &n, err))
		return -EINVAL;
	s->nodes = n;
	return 0;
}

static int set_node_memory(struct scenario *s, const char *value, char **err)
{
	if (!strcmp(value, "even"))
		return 0;

	g_autoptr(GPtrArray) parts = scenario_split(value, ",");

	if (parts->len > TOPOLOGY_MAX_NODES)
		return scenario_fail(err, "%u nodes; the most is %u", parts->len,
				     TOPOLOGY_MAX_NODES);
	g_free(s->node_memory);
	s->node_memory = g_new0(u64, parts->len);
	s->nr_node_memory = parts->len;
	for (u32 i = 0; i < parts->len; i++)
		if (scenario_parse_size(parts->pdata[i], &s->node_memory[i], err))
			return -EINVAL;
	return 0;
}

static int set_distance(struct scenario *s, const char *value, char **err)
{
	/* Rows may be parted by ; for the reader's sake. */
	g_autofree char *flat = g_strdelimit(g_strdup(value), ";", ',');
	g_autoptr(GPtrArray) parts = scenario_split(flat, ",");
	u64 n;

	if (parts->len > TOPOLOGY_MAX_NODES * TOPOLOGY_MAX_NODES)
		return scenario_fail(err, "a matrix of %u distances; the most is %u x %u",
				     parts->len, TOPOLOGY_MAX_NODES, TOPOLOGY_MAX_NODES);
	g_free(s->distance);
	s->distance = g_new0(u32, parts->len);
	s->nr_distance = parts->len;
	for (u32 i = 0; i < parts->len; i++) {
		if (parse_u64(parts->pdata[i], 10, 254, &n, err))
			return -EINVAL;
		s->distance[i] = n;
	}
	return 0;
}

static int set_apic(struct scenario *s, const char *value, char **err)
{
	static const char *const names[] = {
		[SCENARIO_APIC_AUTO] = "auto", [SCENARIO_APIC_XAPIC] = "xapic",
		[SCENARIO_APIC_X2APIC] = "x2apic", [SCENARIO_APIC_KERNEL] = "kernel",
	};
	int i = parse_choice(value, names, ARRAY_SIZE(names), err);

	if (i < 0)
		return i;
	s->apic = i;
	return 0;
}

static void replace(char **slot, const char *value)
{
	g_free(*slot);
	*slot = g_strdup(value);
}

static int set_cpu_model(struct scenario *s, const char *value, char **err)
{
	static const char *const names[] = { "faultbed-v1", "host" };

	if (parse_choice(value, names, ARRAY_SIZE(names), err) < 0)
		return -EINVAL;
	replace(&s->cpu_model, value);
	return 0;
}

static int set_cost_model(struct scenario *s, const char *value, char **err)
{
	g_free(s->cost_model);
	s->cost_model = NULL;
	if (!strcmp(value, "auto"))
		return 0;
	/* A path is relative to the scenario, as kernels are; a name means one of the project's own. */
	if (strchr(value, '/')) {
		g_autofree char *dir = g_path_get_dirname(s->path);

		s->cost_model = g_path_is_absolute(value) ? g_strdup(value) :
							    g_build_filename(dir, value, NULL);
		return 0;
	}
	if (g_str_has_suffix(value, ".ini"))
		return scenario_fail(
			err,
			"\"%s\" is neither a name, like simple, nor a path: a file beside the scenario is ./%s",
			value, value);
	s->cost_model = g_strdup(value);
	return 0;
}

static int set_pin(struct scenario *s, const char *value, char **err)
{
	if (strcmp(value, "none") && strcmp(value, "auto")) {
		g_autoptr(GPtrArray) parts = scenario_split(value, ",");

		for (u32 i = 0; i < parts->len; i++) {
			g_auto(GStrv) ends = g_strsplit(parts->pdata[i], "-", 2);
			guint64 lo, hi;

			/* Decimal only, as all that read the list after this do. */
			if (!ends[0] ||
			    !g_ascii_string_to_unsigned(ends[0], 10, 0, 8191, &lo, NULL) ||
			    (ends[1] &&
			     !g_ascii_string_to_unsigned(ends[1], 10, lo, 8191, &hi, NULL)))
				return scenario_fail(
					err,
					"\"%s\" is neither none, auto nor a list of host CPUs like 0,2,4-7",
					value);
		}
	}
	replace(&s->pin, value);
	return 0;
}

/* A file of the user's; "default" is the project's own build. */
static int set_path(const struct scenario *s, char **slot, const char *value)
{
	g_free(*slot);
	*slot = NULL;
	if (strcmp(value, "default")) {
		g_autofree char *dir = g_path_get_dirname(s->path);

		*slot = g_path_is_absolute(value) ? g_strdup(value) :
						    g_build_filename(dir, value, NULL);
	}
	return 0;
}

static int set_kernel(struct scenario *s, const char *value, char **err)
{
	return set_path(s, &s->kernel, value);
}

static int set_initrd(struct scenario *s, const char *value, char **err)
{
	return set_path(s, &s->initrd, value);
}

static int set_disk(struct scenario *s, const char *value, char **err)
{
	s->disk_on = strcmp(value, "none");
	return set_path(s, &s->disk, s->disk_on ? value : "default");
}

static int set_disk_mode(struct scenario *s, const char *value, char **err)
{
	static const char *const names[] = { "cow", "ro" };
	int i = parse_choice(value, names, ARRAY_SIZE(names), err);

	if (i < 0)
		return i;
	s->disk_read_only = i == 1;
	return 0;
}

static int set_append(struct scenario *s, const char *value, char **err)
{
	/* The kernel's own limit (COMMAND_LINE_SIZE of x86), with room for what the VMM adds. */
	if (strlen(value) > 1536)
		return scenario_fail(err, "%zu bytes; a kernel command line has room for 1536",
				     strlen(value));
	replace(&s->append, value);
	return 0;
}

static int set_add(struct scenario *s, const char *value, char **err)
{
	if (!*value)
		return 0;
	g_ptr_array_unref(s->add);
	s->add = scenario_split(value, ",");
	for (u32 i = 0; i < s->add->len; i++) {
		const char *item = s->add->pdata[i], *colon = strchr(item, ':');

		if (!*item || item == colon)
			return scenario_fail(
				err,
				"an empty path in the list: write PATH or PATH:GUESTPATH, parted by commas");
		if (colon && colon[1] != '/')
			return scenario_fail(
				err,
				"\"%s\": the path in the guest, behind the colon, must begin with /",
				item);
	}
	return 0;
}

static int set_pv(struct scenario *s, const char *value, char **err)
{
	/* Async page faults come as an interrupt since 5.8; one bit without the other is unused. */
	static const struct {
		const char *name;
		u32 bits;
	} pv[] = {
		{ "tlb_flush", BIT(KVM_FEATURE_PV_TLB_FLUSH) },
		{ "send_ipi", BIT(KVM_FEATURE_PV_SEND_IPI) },
		{ "async_pf", BIT(KVM_FEATURE_ASYNC_PF) | BIT(KVM_FEATURE_ASYNC_PF_INT) },
		{ "steal_time", BIT(KVM_FEATURE_STEAL_TIME) },
		{ "pv_eoi", BIT(KVM_FEATURE_PV_EOI) },
	};
	const char *names[ARRAY_SIZE(pv)];

	if (!strcmp(value, "none"))
		return 0;
	for (u32 i = 0; i < ARRAY_SIZE(pv); i++)
		names[i] = pv[i].name;

	g_autoptr(GPtrArray) parts = scenario_split(value, ",");

	for (u32 i = 0; i < parts->len; i++) {
		int n = parse_choice(parts->pdata[i], names, ARRAY_SIZE(names), err);

		if (n < 0)
			return n;
		s->pv_features |= pv[n].bits;
	}
	return 0;
}

static int set_command(struct scenario *s, const char *value, char **err)
{
	if (strlen(value) > 1000)
		return scenario_fail(
			err, "%zu bytes; a command has room for 1000 (add a script with guest.add)",
			strlen(value));
	replace(&s->command, value);
	return 0;
}

static int set_time(u64 *slot, const char *value, u64 min, u64 max, char **err)
{
	u64 ns;

	if (scenario_parse_time(value, &ns, err))
		return -EINVAL;
	if (ns < min || ns > max)
		return scenario_fail(err, "\"%s\" is not between %g s and %g s", value,
			    (double)min / NSEC_PER_SEC, (double)max / NSEC_PER_SEC);
	*slot = ns;
	return 0;
}

#define DAY	(86400 * NSEC_PER_SEC)

static int set_warmup(struct scenario *s, const char *value, char **err)
{
	return set_time(&s->warmup_ns, value, 0, DAY, err);
}

static int set_duration(struct scenario *s, const char *value, char **err)
{
	return set_time(&s->duration_ns, value, NSEC_PER_USEC, DAY, err);
}

static int set_timeout(struct scenario *s, const char *value, char **err)
{
	return set_time(&s->timeout_ns, value, NSEC_PER_MSEC, 7 * DAY, err);
}

static int set_boot_timeout(struct scenario *s, const char *value, char **err)
{
	if (!strcmp(value, "timeout")) {
		s->boot_timeout_ns = s->timeout_ns;
		return 0;
	}
	return set_time(&s->boot_timeout_ns, value, NSEC_PER_MSEC, 7 * DAY, err);
}

static int set_host_timeout(struct scenario *s, const char *value, char **err)
{
	if (!strcmp(value, "auto")) {
		s->host_timeout_ns = 0;
		return 0;
	}
	return set_time(&s->host_timeout_ns, value, NSEC_PER_MSEC, 70 * DAY, err);
}

static int set_repeat(struct scenario *s, const char *value, char **err)
{
	u64 n;

	if (parse_u64(value, 1, 100000, &n, err))
		return -EINVAL;
	s->repeat = n;
	return 0;
}

static int set_seed(struct scenario *s, const char *value, char **err)
{
	return parse_u64(value, 0, UINT64_MAX, &s->seed, err);
}

/* Not the VMM's affair but faultbed compare's, which finds it in the result. Which figures that will have is not known yet. */
static int set_headline(struct scenario *s, const char *value, char **err)
{
	if (!*value || value[strspn(value, G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "_.@-")])
		return scenario_fail(err, "no figure's name, such as faults_per_s; auto is the load's own rate");
	return 0;
}

/* In the order in which values are set: boot_timeout looks at timeout. */
const struct scenario_keydesc scenario_keydesc[] = {
	{ "vm", "engine", "auto", false, set_engine },
	{ "vm", "topology", "2x10x2", false, set_topology },
	{ "vm", "cpu_order", "siblings-last", false, set_cpu_order },
	{ "vm", "memory", "1GiB", false, set_memory },
	{ "vm", "nodes", "auto", false, set_nodes },
	{ "vm", "node_memory", "even", false, set_node_memory },
	{ "vm", "distance", "10,21", false, set_distance },
	{ "vm", "apic", "auto", false, set_apic },
	{ "vm", "cpu_model", "faultbed-v1", false, set_cpu_model },
	{ "vm", "cost_model", "auto", false, set_cost_model },
	{ "vm", "pin", "none", false, set_pin },
	{ "guest", "kernel", "default", false, set_kernel },
	{ "guest", "initrd", "default", false, set_initrd },
	{ "guest", "disk", "none", false, set_disk },
	{ "guest", "disk_mode", "cow", false, set_disk_mode },
	{ "guest", "append", "", true, set_append },
	{ "guest", "add", "", true, set_add },
	{ "guest", "pv", "none", false, set_pv },
	{ "run", "command", NULL, false, set_command },
	{ "run", "warmup", "50ms", false, set_warmup },
	{ "run", "duration", "200ms", false, set_duration },
	{ "run", "repeat", "1", false, set_repeat },
	{ "run", "seed", "1", false, set_seed },
	{ "run", "timeout", "300s", false, set_timeout },
	{ "run", "boot_timeout", "timeout", false, set_boot_timeout },
	{ "run", "host_timeout", "auto", false, set_host_timeout },
	{ "run", "headline", "auto", false, set_headline },
};
const u32 scenario_nr_keydesc = ARRAY_SIZE(scenario_keydesc);

/* Names ------------------------------------------------------------------ */

const struct scenario_keydesc *scenario_keydesc_find(const char *section, const char *key)
{
	for (u32 i = 0; i < ARRAY_SIZE(scenario_keydesc); i++)
		if (!strcmp(scenario_keydesc[i].section, section) &&
		    !strcmp(scenario_keydesc[i].key, key))
			return &scenario_keydesc[i];
	return NULL;
}

const char *scenario_section(const char *name, char **err)
{
	for (u32 i = 0; i < ARRAY_SIZE(sections); i++)
		if (!strcmp(sections[i], name))
			return sections[i];

	const char *near = nearest_name(name, sections, ARRAY_SIZE(sections));

	scenario_fail(
		err,
		"unknown section [%.40s]%s%s%s; there are [vm], [guest], [run], [inject], [cost] and [vary]",
		name, near ? "; did you mean [" : "", near ? near : "", near ? "]?" : "");
	return NULL;
}

static bool is_knob(const char *section, const char *key)
{
	return !strcmp(section, "guest") && g_str_has_prefix(key, "knob.");
}

static bool knob_name_ok(const char *name)
{
	return *name && strlen(name) <= KNOB_MAX_BYTES &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == strlen(name);
}

bool scenario_key_known(const char *section, const char *key, char **err)
{
	const char *names[ARRAY_SIZE(scenario_keydesc) + 1];
	g_autofree char *full = g_strdup_printf("%s.%s", section, key);
	u32 nr = 0;

	if (scenario_keydesc_find(section, key) || !strcmp(section, "inject"))
		return true;
	if (!strcmp(section, "cost"))
		return cost_change_known(key, err);
	if (is_knob(section, key)) {
		if (knob_name_ok(key + strlen("knob.")))
			return true;
		scenario_fail(err,
			      "a knob's name has small letters, digits and _ only, %u at most",
			      KNOB_MAX_BYTES);
		return false;
	}
	for (u32 i = 0; i < ARRAY_SIZE(later_keys); i++) {
		if (!strcmp(later_keys[i], full)) {
			scenario_fail(err, "not in this version");
			return false;
		}
	}
	/* The right key under the wrong heading is the likelier mistake. */
	for (u32 i = 0; i < ARRAY_SIZE(scenario_keydesc); i++) {
		if (!strcmp(scenario_keydesc[i].key, key)) {
			scenario_fail(err, "no key of [%s]; it belongs to [%s]", section,
			     scenario_keydesc[i].section);
			return false;
		}
		if (!strcmp(scenario_keydesc[i].section, section))
			names[nr++] = scenario_keydesc[i].key;
	}
	if (!strcmp(section, "guest"))
		names[nr++] = "knob.";

	const char *near = nearest_name(key, names, nr);

	scenario_fail(err, "unknown key%s%s%s", near ? "; did you mean " : "", near ? near : "",
	     near ? "?" : "");
	return false;
}

static int set_knob(struct scenario *s, const char *name, const char *value, char **err)
{
	for (const char *p = value; *p; p++)
		if (g_ascii_isspace(*p))
			return scenario_fail(err, "\"%s\": a knob's value is one word", value);
	if (!*value || strlen(value) > KNOB_MAX_BYTES)
		return scenario_fail(err, "\"%s\": a knob's value has 1 to %u bytes", value,
				     KNOB_MAX_BYTES);
	if (s->knob_name->len == KNOB_MAX)
		return scenario_fail(err, "more than %u knobs", KNOB_MAX);
	g_ptr_array_add(s->knob_name, g_strdup(name));
	g_ptr_array_add(s->knob_value, g_strdup(value));
	return 0;
}

int scenario_key_set(struct scenario *s, const char *section, const char *key, const char *value,
		     char **err)
{
	const struct scenario_keydesc *desc = scenario_keydesc_find(section, key);

	if (desc) {
		if (!*value && !desc->empty_ok)
			return scenario_fail(err, "no value%s%s",
					     desc->def ? "; the default is " : "",
					     desc->def ? desc->def : "");
		return desc->set(s, value, err);
	}
	if (is_knob(section, key))
		return set_knob(s, key + strlen("knob."), value, err);
	/* Kept as a key: what it comes to is known with the cost model (cost-change.c). */
	if (!strcmp(section, "cost"))
		return cost_change_form(key, value, err);
	/* "none" is how a cell of [vary] says that a point has no injection. */
	if (!strcmp(value, "none"))
		return 0;
	g_ptr_array_add(s->inject_key, g_strdup(key));
	g_ptr_array_add(s->inject_value, g_strdup(value));
	return 0;
}
