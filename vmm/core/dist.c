// SPDX-License-Identifier: GPL-2.0-only
/* Distributions of delays: their text form, traces, and drawing from them. */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "base/nearest.h"
#include "core/inject.h"

#define MAX_DELAY_NS		(10 * NSEC_PER_SEC)
#define MAX_TRACE_BYTES		(64u << 20)
#define MAX_TRACE_LINES		(4u << 20)

static int fail(char **err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int fail(char **err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	*err = g_strdup_vprintf(fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* "5us", "1.5ms" into ns. */
static int parse_duration(const char *text, double *ns, char **err)
{
	static const struct { const char *name; double factor; } unit[] = {
		{ "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 },
	};
	char *end;
	double n;

	if (*text == '-')
		return fail(err, "\"%s\" is negative: a delay is at least 0ns", text);
	if (!g_ascii_isdigit(*text))
		return fail(err, "\"%s\" is not a duration: a number and its unit, like 5us", text);
	/* g_ascii_strtod() would take hexadecimal and exponents as well. */
	end = (char *)text + strspn(text, "0123456789.");
	n = g_ascii_strtod(text, NULL);
	if (memchr(text, '.', (size_t)(end - text)) != memrchr(text, '.', (size_t)(end - text)) ||
	    end[-1] == '.')
		return fail(err, "\"%s\" is not a duration: a number and its unit, like 5us", text);
	if (!*end)
		return fail(err, "\"%s\" has no unit: write %sns, %sus, %sms or %ss", text, text, text,
			    text, text);
	for (u32 i = 0; i < ARRAY_SIZE(unit); i++) {
		if (strcmp(end, unit[i].name))
			continue;
		*ns = n * unit[i].factor;
		if (*ns > (double)MAX_DELAY_NS)
			return fail(err, "\"%s\" is above 10s, the longest delay", text);
		return 0;
	}
	return fail(err, "\"%s\" has the unknown unit \"%s\": units are ns, us, ms and s", text, end);
}

/* A plain positive decimal number. */
static bool parse_number(const char *text, double *n)
{
	size_t len = strspn(text, "0123456789.");

	if (!len || text[len] || !g_ascii_isdigit(text[0]) || text[len - 1] == '.' ||
	    strchr(text, '.') != strrchr(text, '.'))
		return false;
	*n = g_ascii_strtod(text, NULL);
	return isfinite(*n);
}

/* Split "a<sep>b" and trim; false if sep is missing or a side is empty. */
static bool split(const char *text, const char *sep, char **a, char **b)
{
	const char *at = strstr(text, sep);

	if (!at)
		return false;
	*a = g_strstrip(g_strndup(text, (gsize)(at - text)));
	*b = g_strstrip(g_strdup(at + strlen(sep)));
	return true;
}

static int parse_one(struct dist *d, const char *args, char **err)
{
	return parse_duration(args, &d->a, err);
}

static int parse_exp(struct dist *d, const char *args, char **err)
{
	int ret = parse_duration(args, &d->a, err);

	if (!ret && d->a <= 0)
		return fail(err, "exp:%s has a mean of 0: use fixed:0ns for no delay", args);
	return ret;
}

static int parse_uniform(struct dist *d, const char *args, char **err)
{
	g_autofree char *lo = NULL, *hi = NULL;
	int ret;

	if (!split(args, "..", &lo, &hi))
		return fail(err, "uniform:%s is not LOW..HIGH, like uniform:2us..8us", args);
	ret = parse_duration(lo, &d->a, err);
	ret = ret ?: parse_duration(hi, &d->b, err);
	if (!ret && d->b < d->a)
		return fail(err, "uniform:%s has its ends reversed: write uniform:%s..%s", args, hi, lo);
	return ret;
}

/* A duration above 0 and a number, for lognormal and pareto. */
static int parse_shaped(struct dist *d, const char *kind, const char *args, const char *shape,
			char **err)
{
	g_autofree char *first = NULL, *second = NULL;
	bool lognormal = d->kind == DIST_LOGNORMAL;
	int ret;

	if (!split(args, ",", &first, &second))
		return fail(err, "%s:%s is not %s,%s, like %s", kind, args, lognormal ? "MEDIAN" : "MINIMUM",
			    shape, lognormal ? "lognormal:2us,0.5" : "pareto:1us,2.5");
	ret = parse_duration(first, &d->a, err);
	if (ret)
		return ret;
	if (d->a <= 0)
		return fail(err, "%s:%s: the %s must be above 0", kind, args, lognormal ? "median" : "minimum");
	if (!parse_number(second, &d->s) || d->s <= 0 || (lognormal && d->s > 10))
		return fail(err, "%s:%s: %s is \"%s\", but must be a number above 0%s", kind, args, shape,
			    second, lognormal ? " and at most 10" : "");
	return 0;
}

static int add_trace_line(GArray *values, const char *path, u32 line, char *text, char **err)
{
	g_autofree char *why = NULL;
	double ns;
	u64 value;

	g_strstrip(text);
	if (!*text || *text == '#')
		return 0;
	if (parse_duration(text, &ns, &why))
		return fail(err, "%s:%u: %s", path, line, why);
	if (values->len == MAX_TRACE_LINES)
		return fail(err, "%s:%u: a trace has at most %u values", path, line, MAX_TRACE_LINES);
	value = (u64)llround(ns);
	g_array_append_val(values, value);
	return 0;
}

static int parse_trace(struct dist *d, const char *args, const char *dir, char **err)
{
	g_autofree char *path = g_path_is_absolute(args) || !dir ? g_strdup(args) :
				g_build_filename(dir, args, NULL);
	g_autofree char *text = NULL;
	g_autoptr(GError) error = NULL;
	struct stat st;
	GArray *values;
	gsize len;
	int ret = 0;

	if (!*args)
		return fail(err, "trace: needs a file, like trace:delays.txt");
	/* Not a FIFO or device, which would hang or never end. */
	if (!stat(path, &st)) {
		if (!S_ISREG(st.st_mode))
			return fail(err, "trace %s is not a regular file", path);
		/* Before it is read: a sparse file of a terabyte would be. */
		if (st.st_size > MAX_TRACE_BYTES)
			return fail(err, "trace %s is larger than %u MiB", path,
				    MAX_TRACE_BYTES >> 20);
	}
	if (!g_file_get_contents(path, &text, &len, &error))
		return fail(err, "trace cannot be read: %s", error->message);
	if (len > MAX_TRACE_BYTES)
		return fail(err, "trace %s is larger than %u MiB", path, MAX_TRACE_BYTES >> 20);
	if (memchr(text, '\0', len))
		return fail(err, "trace %s is not text", path);

	values = g_array_new(FALSE, FALSE, sizeof(u64));
	for (char *p = text, *next; p && !ret; p = next) {
		next = strchr(p, '\n');
		if (next)
			*next++ = '\0';
		d->nr_trace++;		/* the line for now */
		ret = add_trace_line(values, path, d->nr_trace, p, err);
	}
	d->nr_trace = values->len;
	if (!ret && !values->len)
		ret = fail(err, "trace %s has no durations: one a line, like 5us", path);
	d->trace = (u64 *)(void *)g_array_free(values, ret != 0);
	return ret;
}

int dist_parse(struct dist *dist, const char *text, const char *dir, char **err)
{
	static const char *const kind[] = {
		[DIST_FIXED - 1] = "fixed", [DIST_UNIFORM - 1] = "uniform", [DIST_EXP - 1] = "exp",
		[DIST_LOGNORMAL - 1] = "lognormal", [DIST_PARETO - 1] = "pareto",
		[DIST_TRACE - 1] = "trace",
	};
	const char *colon = strchr(text, ':');
	g_autofree char *name = colon ? g_strndup(text, (gsize)(colon - text)) : g_strdup(text);
	const char *args = colon ? colon + 1 : "";
	const char *near;
	int ret;

	memset(dist, 0, sizeof(*dist));
	for (u32 i = 0; i < ARRAY_SIZE(kind); i++)
		if (!strcmp(name, kind[i]))
			dist->kind = (enum dist_kind)(i + 1);
	if (dist->kind != DIST_NONE && !colon)
		return fail(err, "%s has no parameters: write it like fixed:5us", name);
	switch (dist->kind) {
	case DIST_FIXED: ret = parse_one(dist, args, err); break;
	case DIST_UNIFORM: ret = parse_uniform(dist, args, err); break;
	case DIST_EXP: ret = parse_exp(dist, args, err); break;
	case DIST_LOGNORMAL: ret = parse_shaped(dist, name, args, "SIGMA", err); break;
	case DIST_PARETO: ret = parse_shaped(dist, name, args, "ALPHA", err); break;
	case DIST_TRACE: ret = parse_trace(dist, args, dir, err); break;
	default:
		near = nearest_name(name, kind, ARRAY_SIZE(kind));
		if (g_ascii_isdigit(*text))
			return fail(err, "\"%s\" names no distribution: write fixed:%s%s", text, text,
				    strspn(text, "0123456789.") == strlen(text) ? "us" : "");
		return fail(err, "unknown distribution \"%s\"%s%s%s: there are fixed, uniform, exp, lognormal, pareto and trace",
			    name, near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
	}
	if (ret)
		dist->kind = DIST_NONE;
	return ret;
}

void dist_destroy(struct dist *dist)
{
	g_free(dist->trace);
	memset(dist, 0, sizeof(*dist));
}

u64 dist_draw(const struct dist *dist, struct rng *rng, u32 *pos)
{
	double ns;

	switch (dist->kind) {
	case DIST_FIXED:
		ns = dist->a;
		break;
	case DIST_UNIFORM:
		ns = dist->a + (dist->b - dist->a) * rng_unit(rng);
		break;
	case DIST_EXP:
		ns = -dist->a * log(rng_unit(rng));
		break;
	case DIST_LOGNORMAL:
		ns = dist->a * exp(dist->s * rng_normal(rng));
		break;
	case DIST_PARETO:
		ns = dist->a * pow(rng_unit(rng), -1.0 / dist->s);
		break;
	case DIST_TRACE:
		return dist->trace[(*pos)++ % dist->nr_trace];
	case DIST_NONE:
	default:
		return 0;
	}
	/* Also catches an overflow to infinity in a far tail. */
	if (!(ns < (double)MAX_DELAY_NS))
		return MAX_DELAY_NS;
	return (u64)llround(ns);
}

u64 dist_min(const struct dist *dist)
{
	u64 min = UINT64_MAX;

	switch (dist->kind) {
	case DIST_FIXED:
	case DIST_UNIFORM:
	case DIST_PARETO:
		return (u64)llround(dist->a);
	case DIST_TRACE:
		for (u32 i = 0; i < dist->nr_trace; i++)
			min = dist->trace[i] < min ? dist->trace[i] : min;
		return min;
	default:
		return 0;
	}
}

double dist_mean(const struct dist *dist)
{
	double sum = 0;

	switch (dist->kind) {
	case DIST_FIXED:
	case DIST_EXP:
		return dist->a;
	case DIST_UNIFORM:
		return (dist->a + dist->b) / 2;
	case DIST_LOGNORMAL:
		return dist->a * exp(dist->s * dist->s / 2);
	case DIST_PARETO:
		return dist->s > 1 ? dist->a * dist->s / (dist->s - 1) : INFINITY;
	case DIST_TRACE:
		for (u32 i = 0; i < dist->nr_trace; i++)
			sum += (double)dist->trace[i];
		return sum / dist->nr_trace;
	default:
		return 0;
	}
}
