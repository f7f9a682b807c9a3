// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "base/nearest.h"
#include "core/inject.h"

#define MAX_PAGES_PER_S	10000000u

#define MAX_BLK_DEPTH	256u

_Static_assert((u32)NR_EPT_CAUSES <= (u32)NR_DISTANCE_CLASSES && (u32)NR_BLK_OPS <= (u32)NR_DISTANCE_CLASSES,
	       "histograms are kept by class");

/* What a rule matches; a larger value is more specific and wins. */
enum scope {
	SCOPE_ALL,
	SCOPE_CLASS,		/* ipi: distance class `a`; ept: cause `a`; blk: operation `a` */
	SCOPE_NODE,		/* ipi: from node `a` to node `b`; ept: page on node `a` */
};

struct inject_rule {
	enum inject_point point;
	enum scope scope;
	u32 a, b;
	struct dist dist;
};

/* Keys with one meaning each; the node keys carry numbers and the last five no distribution. */
static const struct fixed_key {
	const char *name;
	enum inject_point point;
	enum scope scope;
	u32 a;
} fixed_keys[] = {
	{ "ipi.all", INJECT_ipi, SCOPE_ALL, 0 },
	{ "ipi.self", INJECT_ipi, SCOPE_CLASS, DISTANCE_SELF },
	{ "ipi.smt", INJECT_ipi, SCOPE_CLASS, DISTANCE_SMT },
	{ "ipi.socket", INJECT_ipi, SCOPE_CLASS, DISTANCE_SOCKET },
	{ "ipi.remote", INJECT_ipi, SCOPE_CLASS, DISTANCE_REMOTE },
	{ "ept.all", INJECT_ept, SCOPE_ALL, 0 },
	{ "ept.first_touch", INJECT_ept, SCOPE_CLASS, EPT_FIRST_TOUCH },
	{ "ept.refault_delay", INJECT_ept, SCOPE_CLASS, EPT_REFAULT },
	{ "ept.write_protect_delay", INJECT_ept, SCOPE_CLASS, EPT_WRITE_PROTECT },
	{ "timer.all", INJECT_timer, SCOPE_ALL, 0 },
	{ "exit.all", INJECT_exit, SCOPE_ALL, 0 },
	{ "blk.all", INJECT_blk, SCOPE_ALL, 0 },
	{ "blk.read", INJECT_blk, SCOPE_CLASS, BLK_READ },
	{ "blk.write", INJECT_blk, SCOPE_CLASS, BLK_WRITE },
	{ "blk.flush", INJECT_blk, SCOPE_CLASS, BLK_FLUSH },
};

static const char *const other_keys[] = {
	"ipi.node.A-B", "ept.node.N", "ipi.vectors", "ept.refault", "ept.write_protect", "ept.count", "blk.depth",
};

static int fail(char **err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int fail(char **err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	*err = g_strdup_vprintf(fmt, ap);
	va_end(ap);
	return -EINVAL;
}

void inject_init(struct inject *inj)
{
	memset(inj, 0, sizeof(*inj));
	inj->ipi_vector_min = 0x10;
	inj->ipi_vector_max = 0xff;
	for (u32 p = 0; p < NR_INJECT_POINTS; p++)
		for (u32 c = 0; c < NR_DISTANCE_CLASSES; c++)
			hist_init(&inj->hist[p][c]);
}

static int unknown_key(const char *key, char **err)
{
	const char *names[ARRAY_SIZE(fixed_keys) + ARRAY_SIZE(other_keys)];
	const char *near;
	u32 n = 0;

	for (u32 i = 0; i < ARRAY_SIZE(fixed_keys); i++)
		names[n++] = fixed_keys[i].name;
	for (u32 i = 0; i < ARRAY_SIZE(other_keys); i++)
		names[n++] = other_keys[i];
	near = nearest_name(key, names, n);
	return fail(err, "unknown injection key \"%s\"%s%s%s", key, near ? "; did you mean " : "",
		    near ? near : "", near ? "?" : "");
}

static int add_rule(struct inject *inj, struct inject_rule *rule, const char *value,
		    const char *dir, char **err)
{
	int ret;

	for (u32 i = 0; i < inj->nr_rules; i++) {
		const struct inject_rule *r = &inj->rules[i];

		if (r->point == rule->point && r->scope == rule->scope && r->a == rule->a &&
		    r->b == rule->b)
			return fail(err, "given twice");
	}
	ret = dist_parse(&rule->dist, value, dir, err);
	if (ret) {
		dist_destroy(&rule->dist);
		return ret;
	}
	inj->rules = g_renew(struct inject_rule, inj->rules, inj->nr_rules + 1);
	inj->rules[inj->nr_rules++] = *rule;
	inj->active[rule->point] = true;
	if (rule->point == INJECT_ept)
		inj->ept_serve = true;
	return 0;
}

/* A plain decimal number below `limit`; moves *text behind it. */
static bool take_number(const char **text, u32 limit, u32 *n)
{
	const char *p = *text;
	u64 v = 0;

	if (!g_ascii_isdigit(*p))
		return false;
	for (; g_ascii_isdigit(*p); p++) {
		v = v * 10 + (u64)(*p - '0');
		if (v >= limit)
			return false;
	}
	*text = p;
	*n = (u32)v;
	return true;
}

static int add_node_rule(struct inject *inj, const char *key, const char *value, const char *dir,
			 char **err)
{
	struct inject_rule rule = { .scope = SCOPE_NODE };
	const char *p = key + strlen("ipi.node.");
	bool ok;

	rule.point = key[0] == 'i' ? INJECT_ipi : INJECT_ept;
	ok = take_number(&p, TOPOLOGY_MAX_NODES, &rule.a);
	if (rule.point == INJECT_ipi)
		ok = ok && *p++ == '-' && take_number(&p, TOPOLOGY_MAX_NODES, &rule.b);
	if (!ok || *p)
		return fail(err, "\"%s\" is not %s with node numbers below %u, like %s", key,
			    rule.point == INJECT_ipi ? "ipi.node.A-B" : "ept.node.N", TOPOLOGY_MAX_NODES,
			    rule.point == INJECT_ipi ? "ipi.node.0-1" : "ept.node.1");
	return add_rule(inj, &rule, value, dir, err);
}

/* One end of the vector range: hexadecimal with 0x, or decimal. */
static bool take_vector(const char *text, u32 *vector)
{
	char *end;
	bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	guint64 v;

	if (!g_ascii_isdigit(*text))
		return false;
	v = g_ascii_strtoull(text, &end, hex ? 16 : 10);
	if (end == text || *end || v < 0x10 || v > 0xff)
		return false;
	*vector = (u32)v;
	return true;
}

static int set_vectors(struct inject *inj, const char *value, char **err)
{
	const char *dots = strstr(value, "..");
	g_autofree char *first = dots ? g_strndup(value, (gsize)(dots - value)) : g_strdup(value);
	u32 lo, hi;

	if (!take_vector(first, &lo) || !take_vector(dots ? dots + 2 : first, &hi) || lo > hi)
		return fail(err, "\"%s\" is not a range of interrupt vectors: 0xLO..0xHI, from 0x10 to 0xff, like 0xfb..0xfd",
			    value);
	inj->ipi_vector_min = (u8)lo;
	inj->ipi_vector_max = (u8)hi;
	return 0;
}

static int set_rate(struct inject *inj, u64 *pages_per_s, const char *value, char **err)
{
	const char *p = value;
	u32 rate;

	if (!take_number(&p, MAX_PAGES_PER_S + 1, &rate) || !rate || strcmp(p, "/s"))
		return fail(err, "\"%s\" is not a rate: pages a second from 1/s to %u/s, like 2000/s", value,
			    MAX_PAGES_PER_S);
	*pages_per_s = rate;
	inj->ept_serve = true;
	return 0;
}

static int set_count(struct inject *inj, const char *value, char **err)
{
	if (!strcmp(value, "yes"))
		inj->ept_serve = true;
	else if (strcmp(value, "no"))
		return fail(err, "\"%s\" is neither yes nor no", value);
	return 0;
}

static int set_blk_depth(struct inject *inj, const char *value, char **err)
{
	const char *p = value;
	u32 n = 0;

	if (!take_number(&p, MAX_BLK_DEPTH + 1, &n) || !n || *p)
		return fail(err, "\"%s\" is not a number of requests from 1 to %u", value, MAX_BLK_DEPTH);
	inj->blk_depth = n;
	return 0;
}

int inject_add(struct inject *inj, const char *key, const char *value, const char *dir, char **err)
{
	for (u32 i = 0; i < ARRAY_SIZE(fixed_keys); i++) {
		const struct fixed_key *k = &fixed_keys[i];
		struct inject_rule rule = { .point = k->point, .scope = k->scope, .a = k->a };

		if (!strcmp(key, k->name))
			return add_rule(inj, &rule, value, dir, err);
	}
	if (g_str_has_prefix(key, "ipi.node.") || g_str_has_prefix(key, "ept.node."))
		return add_node_rule(inj, key, value, dir, err);
	if (!strcmp(key, "ipi.vectors"))
		return set_vectors(inj, value, err);
	if (!strcmp(key, "ept.refault"))
		return set_rate(inj, &inj->ept_refault_per_s, value, err);
	if (!strcmp(key, "ept.write_protect"))
		return set_rate(inj, &inj->ept_protect_per_s, value, err);
	if (!strcmp(key, "blk.depth"))
		return set_blk_depth(inj, value, err);
	if (!strcmp(key, "ept.count"))
		return set_count(inj, value, err);
	return unknown_key(key, err);
}

int inject_check_nodes(const struct inject *inj, u32 nr_nodes, char **err)
{
	for (u32 i = 0; i < inj->nr_rules; i++) {
		const struct inject_rule *r = &inj->rules[i];
		u32 node = r->a > r->b ? r->a : r->b;

		if (r->scope == SCOPE_NODE && node >= nr_nodes)
			return fail(err, "%s.node names node %u, but the topology has nodes 0 to %u",
				    inject_point_name(r->point), node, nr_nodes - 1);
	}
	return 0;
}

void inject_start(struct inject *inj, u32 nr_vcpus, u64 seed)
{
	inj->nr_vcpus = nr_vcpus;
	inj->stream = g_malloc0_n(nr_vcpus, sizeof(*inj->stream));
	for (u32 v = 0; v < nr_vcpus; v++)
		for (u32 p = 0; p < NR_INJECT_POINTS; p++)
			g_mutex_init(&inj->stream[v][p].lock);
	inject_seed(inj, seed);
}

void inject_seed(struct inject *inj, u64 seed)
{
	for (u32 v = 0; v < inj->nr_vcpus; v++) {
		for (u32 p = 0; p < NR_INJECT_POINTS; p++) {
			struct inject_stream *s = &inj->stream[v][p];

			g_mutex_lock(&s->lock);
			/* A point added later leaves the streams of the others as they are. */
			rng_seed(&s->rng, seed, (u64)p << 32 | v);
			s->trace_pos = (u32)rng_next(&s->rng);
			g_mutex_unlock(&s->lock);
		}
	}
}

void inject_destroy(struct inject *inj)
{
	for (u32 i = 0; i < inj->nr_rules; i++)
		dist_destroy(&inj->rules[i].dist);
	g_free(inj->rules);
	for (u32 v = 0; inj->stream && v < inj->nr_vcpus; v++)
		for (u32 p = 0; p < NR_INJECT_POINTS; p++)
			g_mutex_clear(&inj->stream[v][p].lock);
	g_free(inj->stream);
	memset(inj, 0, sizeof(*inj));
}

/* Which class of its point an event is of. */
static u32 class_of(enum inject_point point, const struct inject_event *ev)
{
	switch (point) {
	case INJECT_ept:
		return ev->ept;
	case INJECT_blk:
		return ev->blk;
	default:
		return ev->class;
	}
}

static bool rule_matches(const struct inject_rule *r, const struct inject_event *ev)
{
	switch (r->scope) {
	case SCOPE_ALL:
		return true;
	case SCOPE_CLASS:
		return r->a == class_of(r->point, ev);
	case SCOPE_NODE:
		if (r->point == INJECT_ept)
			return r->a == ev->dst_node;
		return r->a == ev->src_node && r->b == ev->dst_node;
	}
	return false;
}

static const struct inject_rule *find_rule(const struct inject *inj, enum inject_point point,
					   const struct inject_event *ev)
{
	const struct inject_rule *best = NULL;

	if (point == INJECT_ipi &&
	    (ev->vector < inj->ipi_vector_min || ev->vector > inj->ipi_vector_max))
		return NULL;
	for (u32 i = 0; i < inj->nr_rules; i++) {
		const struct inject_rule *r = &inj->rules[i];

		if (r->point == point && (!best || r->scope > best->scope) && rule_matches(r, ev))
			best = r;
	}
	return best;
}

u64 inject_delay(struct inject *inj, enum inject_point point, u32 vcpu,
		 const struct inject_event *ev)
{
	const struct inject_rule *rule = find_rule(inj, point, ev);
	struct inject_stream *s;
	u64 ns;

	if (!rule)
		return 0;
	fb_assert(vcpu < inj->nr_vcpus);
	s = &inj->stream[vcpu][point];
	g_mutex_lock(&s->lock);
	ns = dist_draw(&rule->dist, &s->rng, &s->trace_pos);
	g_mutex_unlock(&s->lock);
	hist_add(&inj->hist[point][class_of(point, ev)], ns);
	return ns;
}

u64 inject_min(const struct inject *inj, enum inject_point point)
{
	u64 min = UINT64_MAX;

	for (u32 i = 0; i < inj->nr_rules; i++) {
		u64 m = inj->rules[i].point == point ? dist_min(&inj->rules[i].dist) : UINT64_MAX;

		min = m < min ? m : min;
	}
	return min;
}

const char *ept_cause_name(enum ept_cause cause)
{
	static const char *const name[NR_EPT_CAUSES] = {
		[EPT_FIRST_TOUCH] = "first_touch", [EPT_REFAULT] = "refault", [EPT_WRITE_PROTECT] = "write_protect",
	};

	return (u32)cause < NR_EPT_CAUSES ? name[cause] : "?";
}

const char *blk_op_name(enum blk_op op)
{
	static const char *const name[NR_BLK_OPS] = {
		[BLK_READ] = "read", [BLK_WRITE] = "write", [BLK_FLUSH] = "flush", [BLK_OTHER] = "other",
	};

	return (u32)op < NR_BLK_OPS ? name[op] : "?";
}

const char *inject_class_name(enum inject_point point, u32 class)
{
	switch (point) {
	case INJECT_ept:
		return class < NR_EPT_CAUSES ? ept_cause_name((enum ept_cause)class) : distance_class_name(class);
	case INJECT_blk:
		return blk_op_name((enum blk_op)class);
	default:
		return distance_class_name(class);
	}
}

const char *inject_point_name(enum inject_point point)
{
	static const char *const name[NR_INJECT_POINTS] = {
#define INJECT_POINT(point_name, engines, meaning) #point_name,
#include "core/inject.def"
#undef INJECT_POINT
	};

	return (u32)point < NR_INJECT_POINTS ? name[point] : "?";
}
