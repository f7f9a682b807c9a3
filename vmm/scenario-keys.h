/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Inside of the scenario reader: the lines of a file (scenario-file.c), the
 * table of keys (scenario-keys.c), and the collection of what is wrong. Only
 * scenario*.c include this, and cost-*.c, whose files have the same form. One thread; no state outside the objects.
 */
#ifndef VMM_SCENARIO_KEYS_H
#define VMM_SCENARIO_KEYS_H

#include "scenario.h"

/* A scenario is a page of text; more than this is some other file. */
#define SCENARIO_MAX_BYTES	(1u << 20)
#define SCENARIO_MAX_CELLS	1000u

/* What was wrong; each message is printed once, however many cells it spoils. */
struct scenario_problems {
	GHashTable *seen;	/* set of messages, owned */
	u32 count;
};

void scenario_problems_init(struct scenario_problems *p);
void scenario_problems_destroy(struct scenario_problems *p);
/* "ORIGIN: message" through fb_err(), unless it was said before. */
void scenario_problem(struct scenario_problems *p, const char *origin, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Files of this form: what they are called in messages, and their sections. */
struct scenario_form {
	const char *what;
	/* The section's name if it is one, else NULL and *err (g_free()) with the nearest. */
	const char *(*section)(const char *name, char **err);
};

/* The whole file, at most SCENARIO_MAX_BYTES, with a NUL behind it; NULL after a message. g_free(). */
char *scenario_file_text(const char *path, const struct scenario_form *form, size_t *len,
			 struct scenario_problems *problems);
/* Take a text apart into `keys` (struct scenario_key, in file order); `path` stands in messages. */
void scenario_text_scan(const char *path, const char *text, size_t len, const struct scenario_form *form,
			GPtrArray *keys, struct scenario_problems *problems);

/*
 * Read the file into `keys` (struct scenario_key, in file order) and take the first
 * comment block as *question. Only the form is judged here: text, sections,
 * key = value, nothing twice. false if it cannot be read at all.
 */
bool scenario_file_read(const char *path, GPtrArray *keys, char **question,
			struct scenario_problems *problems);

void scenario_key_free(void *key);
struct scenario_key *scenario_key_new(const char *section, const char *key, const char *value,
				      const char *origin);

/* The key of that name, or NULL. */
struct scenario_key *scenario_key_find(GPtrArray *keys, const char *section, const char *key);

/* One key of the table. */
struct scenario_keydesc {
	const char *section, *key;
	const char *def;	/* the default as it would be written; NULL if it has none */
	bool empty_ok;		/* an empty value means something */
	/* Store a value. -EINVAL with *err (g_free()): what is wrong and what would be right. */
	int (*set)(struct scenario *s, const char *value, char **err);
};

extern const struct scenario_keydesc scenario_keydesc[];
extern const u32 scenario_nr_keydesc;

/* NULL if there is no such key; knob.* and the keys of [inject] and [vary] are not in the table. */
const struct scenario_keydesc *scenario_keydesc_find(const char *section, const char *key);
/* Does section.key exist, as far as its name tells? If not, *err (g_free()) names the nearest. */
bool scenario_key_known(const char *section, const char *key, char **err);
/* Store one key of [vm], [guest], [run], [inject] or [cost]. -EINVAL with *err. */
int scenario_key_set(struct scenario *s, const char *section, const char *key, const char *value,
		     char **err);
/* The section's name if it is one, else NULL and *err (g_free()) with the nearest. */
const char *scenario_section(const char *name, char **err);

/* Checks over several keys of one cell of `whole`: topology, CPUs to pin to, injections, timeouts. */
void scenario_check(const struct scenario *s, const struct scenario *whole,
		    struct scenario_problems *problems);

/* "2.8GHz", "100MHz"; -EINVAL with *err (g_free()). */
int scenario_parse_frequency(const char *text, u64 *hz, char **err);

/* "1.07ns", "3us", "1ms" as ps, which are its steps; -EINVAL with *err (g_free()). */
int scenario_parse_picoseconds(const char *text, u64 *ps, char **err);

/* *err = the message (g_free()); returns -EINVAL. */
int scenario_fail(char **err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* "a, b ,c" into its trimmed parts (empty ones kept); g_ptr_array_unref(). */
GPtrArray *scenario_split(const char *text, const char *separator);

#endif
