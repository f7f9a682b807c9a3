// SPDX-License-Identifier: GPL-2.0-only
#include "emit.h"

#include <string.h>

#include "base/log.h"
#include "base/nearest.h"
#include "host-memory.h"
#include "peer-vm.h"

/* For what a cell's guest, and the front end beside it, take that nobody has counted. */
#define MEMORY_SLACK_MIB	256

bool emit_kind(const char *kind)
{
	static const char *const kinds[] = { "slurm", "parallel" };
	const char *near = nearest_name(kind, (const char **)kinds, ARRAY_SIZE(kinds));

	if (!strcmp(kind, "slurm") || !strcmp(kind, "parallel"))
		return true;
	fb_err("--emit %s: slurm or parallel%s%s%s", kind, near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
	return false;
}

char *emit_missing(const struct job *job)
{
	GString *list = g_string_new(NULL);

	for (u32 i = 0; i < job->cells->len; i++) {
		const struct cell *cell = job->cells->pdata[i];
		u32 first = cell->nr, last = first;

		if (cell->tried)
			continue;
		while (i + 1 < job->cells->len) {
			const struct cell *next = job->cells->pdata[i + 1];

			if (next->tried || next->nr != last + 1)
				break;
			last++;
			i++;
		}
		g_string_append_printf(list, last > first ? "%s%u-%u" : "%s%u", list->len ? "," : "", first, last);
	}
	return g_string_free(list, FALSE);
}

/* The front end, and where it is run: both the same on every host. */
struct place {
	char *faultbed, *folder;	/* quoted for a shell */
	char *arguments, *output;
	const char *retry;
};

static void place_clear(struct place *p)
{
	g_free(p->faultbed);
	g_free(p->folder);
	g_free(p->arguments);
	g_free(p->output);
}

static void place_init(struct place *p, const struct emit *e)
{
	g_autofree char *self = g_file_read_link("/proc/self/exe", NULL), *cwd = g_get_current_dir();
	const char *vmm = g_getenv("FAULTBED_VMM");
	GString *text = g_string_new(NULL);

	p->faultbed = g_shell_quote(self ? self : "faultbed");
	if (vmm && *vmm) {
		/* Slurm hands its environment on, ssh does not. */
		g_autofree char *name = p->faultbed, *quoted = g_shell_quote(vmm);

		p->faultbed = g_strdup_printf("env FAULTBED_VMM=%s %s", quoted, name);
	}
	p->folder = g_shell_quote(cwd);
	p->output = g_shell_quote(e->output);
	for (char *const *a = e->arguments; *a; a++) {
		g_autofree char *quoted = g_shell_quote(*a);

		g_string_append_printf(text, "%s%s", text->len ? " " : "", quoted);
	}
	p->arguments = g_string_free(text, FALSE);
	p->retry = e->retry ? " --retry" : "";
}

/* Each of them is in a line of a script, be it a comment, which it must not end. */
static bool in_one_line(const struct emit *e)
{
	g_autofree char *cwd = g_get_current_dir();
	const char *bad = strpbrk(cwd, "\n\r") ? cwd : strpbrk(e->output, "\n\r") ? e->output : NULL;

	for (char *const *a = e->arguments; *a && !bad; a++)
		bad = strpbrk(*a, "\n\r") ? *a : NULL;
	if (bad)
		fb_err("--emit: a line break in \"%s\", which no script of jobs can hold; another name, or the value in the scenario file", bad);
	return !bad;
}

/* What one cell may take at most, of all that are to be run. */
struct need {
	u64 mib, seconds;
	u32 cpus;
};

static struct need need_of(const struct job *job)
{
	struct need need = { .cpus = 1 };

	for (u32 i = 0; i < job->cells->len; i++) {
		const struct cell *cell = job->cells->pdata[i];
		const struct scenario *s = cell->scenario;

		if (cell->tried)
			continue;
		need.mib = MAX(need.mib, DIV_ROUND_UP(host_memory_of_cell(cell), MIB) + MEMORY_SLACK_MIB);
		need.seconds = MAX(need.seconds, (u64)job_cell_limit_us(job, cell) / G_USEC_PER_SEC + 1);
		/* Soft has one thread; elsewhere a vCPU is one. */
		if (job->engine != ENGINE_SOFT)
			need.cpus = MAX(need.cpus, s->sockets * s->cores * s->threads);
	}
	return need;
}

/* An enum status, reported. */
static int write_slurm(FILE *to, const struct job *job, const struct emit *e, const struct place *p, const char *cells)
{
	struct need need = need_of(job);
	g_autofree char *logs = g_strconcat(e->output, ".logs", NULL), *full = g_canonicalize_filename(logs, NULL);
	g_autofree char *quoted = g_shell_quote(full);

	/* The name of a log is read by Slurm, which replaces what has a %, and ends at a blank unless quoted. */
	g_autoptr(GString) log = g_string_new(full);

	if (strchr(full, '\\')) {
		fb_err("--emit slurm: Slurm takes no name of a log with a backslash, as in %s; another -o", full);
		return STATUS_BAD_INPUT;
	}
	g_string_replace(log, "%", "%%", 0);
	g_string_append(log, "/%a.log");
	g_string_replace(log, "\"", "\\\"", 0);
	fprintf(to, "#!/bin/bash\n#SBATCH --job-name=faultbed\n#SBATCH --array=%s", cells);
	if (e->throttle)
		fprintf(to, "%%%u", e->throttle);
	fprintf(to, "\n#SBATCH --ntasks=1\n#SBATCH --cpus-per-task=%u\n#SBATCH --mem=%lluM\n#SBATCH --time=%llu\n#SBATCH --open-mode=append\n#SBATCH --output=\"%s\"\n",
		need.cpus, (unsigned long long)need.mib, (unsigned long long)DIV_ROUND_UP(need.seconds, 60u), log->str);
	fprintf(to,
		"#\n# One task a cell, which keeps what it measured in %s.parts/ (docs/sweeps.md). All hosts see this folder.\n"
		"#\n# First\tmkdir -p %s\n# then\tsbatch THIS-FILE\n# and at last, for the result,\n"
		"#\tcd %s && %s sweep %s -o %s --collect\n"
		"# which names cells that are missing. A task that was ended can be submitted again (sbatch --array=N THIS-FILE): a cell that is\n"
		"# finished is not run again.\n\n",
		e->output, quoted, p->folder, p->faultbed, p->arguments, p->output);
	fprintf(to, "cd %s || exit\nexec %s sweep %s -o %s%s --cells \"$SLURM_ARRAY_TASK_ID\"\n", p->folder, p->faultbed, p->arguments, p->output,
		p->retry);
	return STATUS_DONE;
}

/*
 * A job's host may share no folder with us, so that its cell's file comes back in a tar on its standard output, which parallel
 * keeps in a file of its own. $ANSWERS has one for each cell that has been tried.
 */
static void write_parallel(FILE *to, const struct job *job, const struct emit *e, const struct place *p)
{
	/* With their folder, since a name may begin with "-". */
	g_autofree char *full = g_canonicalize_filename(e->output, NULL);
	g_autofree char *answers = g_strconcat(full, ".jobs", NULL), *answers_q = g_shell_quote(answers);
	g_autofree char *parts = g_strconcat(full, ".parts", NULL), *parts_q = g_shell_quote(parts);

	g_autofree char *work = g_strdup_printf("cd %s && t=$(mktemp -d) && trap 'rm -rf \"$t\"' EXIT && { %s sweep %s -o \"$t/r.json\" --cells \"$1\" >&2; s=$?; "
						"cd \"$t/r.json.parts\" && tar --exclude=./lock -cf - .; exit $s; }",
						p->folder, p->faultbed, p->arguments);
	g_autofree char *work_q = g_shell_quote(work);

	fprintf(to,
		"#!/bin/bash\n# Cells of a matrix by GNU parallel (docs/sweeps.md):\n#\n#\tbash THIS-FILE --sshloginfile HOSTS\n#\n"
		"# and other options of parallel's, such as --jobs. Each host has faultbed and the scenario's files at the same paths; it need share no folder with\n"
		"# this one. What was ended goes on where it was when this is started again, and the last of its work is the result.\n\n"
		"cd %s || exit\nwork=%s\n\n", p->folder, work_q);
	/* No -C of tar's, which takes a backslash in a name for its own. */
	fprintf(to, "# A cell's file that did not come through whole is not taken, and the cell is run again.\n"
		"take()\n{\n\tmkdir -p %s %s\n\tfor answer in %s/*.tar; do\n\t\t[ ! -s \"$answer\" ] || (cd %s && tar -xf -) <\"$answer\" 2>/dev/null\n\tdone\n}\n\n",
		parts_q, answers_q, answers_q, parts_q);
	/*
	 * What the other host's login shell is, csh or none at all, shall be the same to the job. The work is an argument and no part of the
	 * command, in which parallel would replace {#} or {= perl =}; arguments it quotes, for as many shells as there are on the way.
	 */
	fprintf(to, "export PARALLEL_SHELL=/bin/bash\ntake\n%s sweep %s -o %s%s --missing |\n"
		"\tparallel --will-cite --results {3}/{1}.tar \"$@\" bash -c {2} cell {1} :::: - ::: \"$work\" ::: %s >/dev/null\ntake\n",
		p->faultbed, p->arguments, p->output, p->retry, answers_q);
	fprintf(to, "exec %s sweep %s -o %s --collect\n", p->faultbed, p->arguments, p->output);
}

int emit_script(FILE *to, const struct job *job, const struct emit *e)
{
	g_autofree char *cells = emit_missing(job);
	int status = STATUS_DONE;
	struct place p;

	if (job->interleave) {
		fb_err("--emit: cells that are compared on the host's clock, or with --interleave, take turns on one host; run them all there");
		return STATUS_BAD_INPUT;
	}
	if (!*cells) {
		fb_err("--emit: every cell is finished; the same command without it writes the result");
		return STATUS_BAD_INPUT;
	}
	if (!in_one_line(e))
		return STATUS_BAD_INPUT;
	if (job->scenario->engine == ENGINE_AUTO)
		fb_warn("engine = auto: each host chooses, and cells of another engine than here, %s, are not collected; --engine %s makes it sure",
			engine_name(job->engine), engine_name(job->engine));
	place_init(&p, e);
	if (!strcmp(e->kind, "slurm"))
		status = write_slurm(to, job, e, &p, cells);
	else
		write_parallel(to, job, e, &p);
	place_clear(&p);
	if (status)
		return status;
	return fflush(to) || ferror(to) ? STATUS_BAD_INPUT : STATUS_DONE;
}
