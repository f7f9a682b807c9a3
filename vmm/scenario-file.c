// SPDX-License-Identifier: GPL-2.0-only
/*
 * The form of a scenario file: lines, sections, keys. It is GKeyFile's format
 * without its escapes and translations, and stricter: GKeyFile forgets line
 * numbers and takes the last of two equal keys, and a testbed that runs with
 * another value than the reader of the file believes is worse than none.
 */
#include "scenario-keys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"

#define MAX_NAME		200u	/* of a key; the longest are joint keys of [vary] */
#define MAX_SCAN_PROBLEMS	20u

void scenario_problems_init(struct scenario_problems *p)
{
	p->seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	p->count = 0;
}

void scenario_problems_destroy(struct scenario_problems *p)
{
	g_hash_table_unref(p->seen);
}

void scenario_problem(struct scenario_problems *p, const char *origin, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	g_autofree char *text = g_strdup_vprintf(fmt, ap);
	va_end(ap);

	char *line = g_strdup_printf("%s: %s", origin, text);

	p->count++;
	/* g_hash_table_add() frees `line` itself if it is known already. */
	if (!g_hash_table_contains(p->seen, line))
		fb_err("%s", line);
	g_hash_table_add(p->seen, line);
}

struct scenario_key *scenario_key_new(const char *section, const char *key, const char *value,
				      const char *origin)
{
	struct scenario_key *k = g_new0(struct scenario_key, 1);

	k->section = g_strdup(section);
	k->key = g_strdup(key);
	k->value = g_strdup(value);
	k->origin = g_strdup(origin);
	return k;
}

void scenario_key_free(void *key)
{
	struct scenario_key *k = key;

	g_free(k->section);
	g_free(k->key);
	g_free(k->value);
	g_free(k->origin);
	g_free(k);
}

/* What the scan carries from line to line. */
struct scan {
	const char *path;
	const struct scenario_form *form;
	GPtrArray *keys;
	struct scenario_problems *problems;
	GHashTable *first;	/* "[section]" or "section.key" to the line it was first seen on */
	const char *section;	/* NULL before the first, or after an unknown one */
	bool unknown;		/* inside an unknown section: its keys were reported with it */
	u32 line;
};

/* true if `name` is new; else says where it stands already. */
static bool scan_once(struct scan *s, const char *origin, char *name, const char *what)
{
	u32 before = GPOINTER_TO_UINT(g_hash_table_lookup(s->first, name));

	if (before) {
		scenario_problem(s->problems, origin, "%s %s a second time; line %u has it already",
				 what, name, before);
		g_free(name);
		return false;
	}
	g_hash_table_insert(s->first, name, GUINT_TO_POINTER(s->line));
	return true;
}

static void scan_section(struct scan *s, const char *origin, char *text)
{
	size_t len = strlen(text);
	g_autofree char *err = NULL;

	s->section = NULL;
	s->unknown = true;
	if (text[len - 1] != ']') {
		scenario_problem(
			s->problems, origin,
			"a section is a line of its own, [name], with nothing behind the ]");
		return;
	}
	text[len - 1] = '\0';

	const char *section = s->form->section(text + 1, &err);

	if (!section) {
		scenario_problem(s->problems, origin, "%s", err);
		return;
	}
	s->section = section;
	s->unknown = false;
	scan_once(s, origin, g_strdup_printf("[%s]", section), "section");
}

static void scan_key(struct scan *s, const char *origin, char *text)
{
	char *eq = strchr(text, '=');

	if (!eq) {
		scenario_problem(
			s->problems, origin,
			"neither [section], nor key = value, nor a comment (a whole line with #)");
		return;
	}
	*eq = '\0';
	g_strstrip(text);

	char *value = g_strstrip(eq + 1);

	if (s->unknown)
		return;
	if (strlen(text) > MAX_NAME) {
		scenario_problem(s->problems, origin, "a key of %zu bytes; the longest is %u",
				 strlen(text), MAX_NAME);
		return;
	}
	if (!s->section) {
		scenario_problem(s->problems, origin, "key %s stands before the first [section]",
				 text);
		return;
	}
	if (!*text) {
		scenario_problem(s->problems, origin, "no key before the =");
		return;
	}
	if (scan_once(s, origin, g_strdup_printf("%s.%s", s->section, text), "key"))
		g_ptr_array_add(s->keys, scenario_key_new(s->section, text, value, origin));
}

/* Bytes that no scenario has; the line protocol to the guest could not carry them either. */
static bool scan_text(struct scan *s, const char *origin, const char *line, size_t len)
{
	if (memchr(line, '\0', len)) {
		scenario_problem(s->problems, origin, "a NUL byte; a %s is a text file",
				 s->form->what);
		return false;
	}
	if (!g_utf8_validate(line, len, NULL)) {
		scenario_problem(s->problems, origin,
				 "not UTF-8; a %s is a text file in UTF-8", s->form->what);
		return false;
	}
	for (size_t i = 0; i < len; i++) {
		u8 c = line[i];

		if ((c < 0x20 && c != '\t' && !(c == '\r' && i == len - 1)) || c == 0x7f) {
			scenario_problem(s->problems, origin, "control character 0x%02x", c);
			return false;
		}
	}
	return true;
}

static void scan_line(struct scan *s, const char *line, size_t len)
{
	g_autofree char *origin = g_strdup_printf("%s:%u", s->path, s->line);

	if (!scan_text(s, origin, line, len))
		return;

	g_autofree char *copy = g_strndup(line, len);
	char *text = g_strstrip(copy);

	if (!*text || *text == '#')
		return;
	if (*text == ';')
		scenario_problem(s->problems, origin, "a comment begins with #, not with ;");
	else if (*text == '[')
		scan_section(s, origin, text);
	else
		scan_key(s, origin, text);
}

/* The first block of comment lines, without the #s; "" if the file opens otherwise. */
static char *first_comment(const char *text)
{
	g_auto(GStrv) lines = g_strsplit(text, "\n", 200);
	GString *out = g_string_new(NULL);

	for (char **l = lines; *l; l++) {
		char *line = g_strstrip(*l);

		if (g_str_has_prefix(line, "#") && strstr(line, "SPDX-License-Identifier"))
			continue;
		if (*line != '#') {
			if (*line || out->len)
				break;
			continue;
		}
		line++;
		if (*line == ' ')
			line++;
		g_string_append_printf(out, "%s%s", out->len ? "\n" : "", line);
	}
	return g_string_free(out, FALSE);
}

char *scenario_file_text(const char *path, const struct scenario_form *form, size_t *len,
			 struct scenario_problems *problems)
{
	/* Opening a FIFO would wait for a writer. */
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	struct stat st;

	if (!f) {
		scenario_problem(problems, path, "%s", g_strerror(errno));
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		scenario_problem(problems, path, "%s; a %s is a file, *.ini",
				 S_ISDIR(st.st_mode) ? "a folder" : "not a regular file", form->what);
		fclose(f);
		return NULL;
	}

	char *text = g_malloc(SCENARIO_MAX_BYTES + 2);

	*len = fread(text, 1, SCENARIO_MAX_BYTES + 1, f);
	text[*len] = '\0';
	if (ferror(f))
		scenario_problem(problems, path, "%s", g_strerror(errno));
	else if (*len > SCENARIO_MAX_BYTES)
		scenario_problem(problems, path, "more than %u KiB; this is no %s",
				 SCENARIO_MAX_BYTES >> 10, form->what);
	else {
		fclose(f);
		return text;
	}
	fclose(f);
	g_free(text);
	return NULL;
}

void scenario_text_scan(const char *path, const char *text, size_t len, const struct scenario_form *form,
			GPtrArray *keys, struct scenario_problems *problems)
{
	struct scan s = { .path = path, .form = form, .keys = keys, .problems = problems };
	const char *at = text, *end = text + len;

	if (g_str_has_prefix(at, "\xef\xbb\xbf"))	/* a byte order mark is harmless */
		at += 3;
	s.first = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	while (at < end) {
		const char *nl = memchr(at, '\n', end - at);
		size_t n = nl ? (size_t)(nl - at) : (size_t)(end - at);

		s.line++;
		scan_line(&s, at, n);
		at += n + (nl ? 1 : 0);
		/* Binary rubbish has something wrong on each line; the first few tell it. */
		if (problems->count >= MAX_SCAN_PROBLEMS) {
			scenario_problem(problems, path, "the rest was not read");
			break;
		}
	}
	g_hash_table_unref(s.first);
}

bool scenario_file_read(const char *path, GPtrArray *keys, char **question,
			struct scenario_problems *problems)
{
	static const struct scenario_form form = { .what = "scenario", .section = scenario_section };
	size_t len;
	g_autofree char *text = scenario_file_text(path, &form, &len, problems);

	if (!text)
		return false;
	scenario_text_scan(path, text, len, &form, keys, problems);
	*question = g_utf8_validate(text, len, NULL) ? first_comment(text) : g_strdup("");
	return true;
}
