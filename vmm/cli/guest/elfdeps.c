/* elfdeps.c - see elfdeps.h.  The search follows ld.so(8): RPATH, LD_LIBRARY_PATH, RUNPATH,
 * ld.so.conf, default folders.  Like the loader, it skips a file that has the right name but
 * another class or machine.
 */
#include "vmm/cli/guest/elfdeps.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_SEARCH = 128, MAX_NEEDED = 64, MAX_CONF_DEPTH = 4 };

/* What one ELF file says about itself. */
struct elf_facts {
	char loader[MAX_HOST_PATH], rpath[1024], runpath[1024];
	char needed[MAX_NEEDED][MAX_LIBRARY_NAME];
	size_t n_needed;
};

struct search {
	char folder[MAX_SEARCH][MAX_HOST_PATH];
	size_t n;
};

static const struct { const char *prefix, *package;
} packages[] = {
	{ "ld-linux.so", "libc6-i386" },
	{ "libc.so", "libc6-i386" },
	{ "libm.so", "libc6-i386" },
	{ "libpthread.so", "libc6-i386" },
	{ "libdl.so", "libc6-i386" },
	{ "librt.so", "libc6-i386" },
	{ "libgomp.so", "lib32gomp1" },
	{ "libgcc_s.so", "lib32gcc-s1" },
	{ "libstdc++.so", "lib32stdc++6" },
	{ "libatomic.so", "lib32atomic1" },
	{ "libgfortran.so", "lib32gfortran5" },
	{ "libquadmath.so", "lib32quadmath0" },
	{ "libz.so", "lib32z1" },
	{ "libncurses", "lib32ncurses6" },
	{ "libtinfo.so", "lib32tinfo6" },
};

static const char *package_hint(const char *name, char *hint, size_t bytes)
{
	const char *base = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;

	for (size_t i = 0; i < ARRAY_LEN(packages); i++)
		if (!strncmp(base, packages[i].prefix, strlen(packages[i].prefix))) {
			snprintf(hint, bytes, "install the package %s, or link with -static",
				 packages[i].package);
			return hint;
		}
	return "install its 32-bit package, add its folder to LD_LIBRARY_PATH, or link with "
	       "-static";
}

int elfdeps_file_kind(const char *path, struct problem *p)
{
	unsigned char head[20] = { 0 };
	/* a pipe that nobody writes to would block */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	ssize_t n;

	if (fd < 0)
		return problem(p, "cannot read %s: %s", path, strerror(errno));
	if (!fstat(fd, &st) && !S_ISREG(st.st_mode)) {
		close(fd);
		return problem(p, "cannot read %s: %s", path, S_ISDIR(st.st_mode) ?
			       strerror(EISDIR) : "not a regular file");
	}
	n = read(fd, head, sizeof head);
	close(fd);
	if (n < 0)
		return problem(p, "cannot read %s: %s", path, strerror(errno));
	if (n >= 2 && head[0] == '#' && head[1] == '!')
		return FILE_SCRIPT;
	if (n < (ssize_t)sizeof head || memcmp(head, ELFMAG, SELFMAG))
		return FILE_OTHER;
	if (head[EI_DATA] != ELFDATA2LSB)
		return FILE_ELF_OTHER;
	if (head[EI_CLASS] == ELFCLASS64 && head[18] == EM_X86_64)
		return FILE_ELF64;
	return head[EI_CLASS] == ELFCLASS32 && head[18] == EM_386 && !head[19] ? FILE_ELF32
									       : FILE_ELF_OTHER;
}

int elfdeps_script_interpreter(const char *path, char *interpreter, char *argument, size_t bytes,
		       struct problem *p)
{
	char line[256] = "", *word, *end;
	FILE *file = fopen(path, "re");

	*interpreter = *argument = 0;
	if (!file)
		return problem(p, "cannot read %s: %s", path, strerror(errno));
	end = fgets(line, sizeof line, file);
	fclose(file);
	if (!end || strncmp(line, "#!", 2))
		return problem(p, "%s is not a script", path);
	line[strcspn(line, "\r\n")] = 0;
	word = line + 2 + strspn(line + 2, " \t");
	end = word + strcspn(word, " \t");
	snprintf(interpreter, bytes, "%.*s", (int)(end - word), word);
	word = end + strspn(end, " \t");
	for (end = word + strlen(word); end > word && (end[-1] == ' ' || end[-1] == '\t'); end--)
		;
	snprintf(argument, bytes, "%.*s", (int)(end - word), word);
	return *interpreter ? 0 : problem(p, "%s names no interpreter after #!", path);
}

static void read_dynamic(Elf *elf, Elf_Scn *section, const GElf_Shdr *header,
			 struct elf_facts *facts)
{
	Elf_Data *data = elf_getdata(section, NULL);
	GElf_Dyn entry;

	for (int i = 0; data && gelf_getdyn(data, i, &entry) && entry.d_tag != DT_NULL; i++) {
		const char *text = elf_strptr(elf, header->sh_link, entry.d_un.d_val);

		if (!text || (entry.d_tag != DT_NEEDED && entry.d_tag != DT_RPATH &&
			      entry.d_tag != DT_RUNPATH))
			continue;
		if (entry.d_tag == DT_RPATH)
			snprintf(facts->rpath, sizeof facts->rpath, "%s", text);
		else if (entry.d_tag == DT_RUNPATH)
			snprintf(facts->runpath, sizeof facts->runpath, "%s", text);
		else if (facts->n_needed < MAX_NEEDED)
			snprintf(facts->needed[facts->n_needed++], MAX_LIBRARY_NAME, "%s", text);
	}
}

static void read_loader(Elf *elf, struct elf_facts *facts)
{
	size_t n = 0, bytes;
	const char *file = elf_rawfile(elf, &bytes);
	GElf_Phdr header;

	elf_getphdrnum(elf, &n);
	for (size_t i = 0; file && i < n; i++)
		if (gelf_getphdr(elf, i, &header) && header.p_type == PT_INTERP &&
		    header.p_offset < bytes && header.p_filesz <= bytes - header.p_offset)
			snprintf(facts->loader, sizeof facts->loader, "%.*s", (int)header.p_filesz,
				 file + header.p_offset);
}

static int read_facts(const char *path, struct elf_facts *facts, struct problem *p)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	Elf *elf;

	memset(facts, 0, sizeof *facts);
	elf_version(EV_CURRENT);
	elf = fd < 0 ? NULL : elf_begin(fd, ELF_C_READ, NULL);
	if (!elf) {
		if (fd >= 0)
			close(fd);
		return problem(p, "cannot read the program %s", path);
	}
	read_loader(elf, facts);
	while ((section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, &header) && header.sh_type == SHT_DYNAMIC)
			read_dynamic(elf, section, &header, facts);
	elf_end(elf);
	close(fd);
	return 0;
}

static void search_add(struct search *search, const char *root, const char *folder, size_t n)
{
	if (!n || search->n == MAX_SEARCH)
		return;
	if (snprintf(search->folder[search->n], MAX_HOST_PATH, "%s%.*s", root, (int)n, folder) <
	    MAX_HOST_PATH)
		search->n++;
}

/* Adds folders that colons separate. $ORIGIN stands for the folder of `path`. */
static void search_add_list(struct search *search, const char *list, const char *path)
{
	const char *slash = strrchr(path, '/');
	char folder[MAX_HOST_PATH];

	while (*list) {
		size_t n = strcspn(list, ":"), mark = 0;

		if (!strncmp(list, "$ORIGIN", 7))
			mark = 7;
		else if (!strncmp(list, "${ORIGIN}", 9))
			mark = 9;
		snprintf(folder, sizeof folder, "%.*s%.*s",
			 mark && slash ? (int)(slash - path)
			 : mark	       ? 1
				       : 0,
			 slash ? path : ".", (int)(n - mark), list + mark);
		search_add(search, "", folder, strlen(folder));
		list += n + (list[n] == ':');
	}
}

/* Adds the folders of a file like /etc/ld.so.conf: a folder a line, `include PATTERN`, comments. */
static void search_add_conf(struct search *search, const char *root, const char *path, int depth)
{
	FILE *file = depth ? fopen(path, "re") : NULL;
	char line[MAX_HOST_PATH], pattern[2 * MAX_HOST_PATH];
	glob_t found;

	while (file && fgets(line, sizeof line, file)) {
		line[strcspn(line, "#\n")] = 0;
		if (!strncmp(line, "include ", 8)) {
			snprintf(pattern, sizeof pattern, "%s%s", root,
				 line + 8 + strspn(line + 8, " \t"));
			if (glob(pattern, 0, NULL, &found))
				continue;
			for (size_t i = 0; i < found.gl_pathc; i++)
				search_add_conf(search, root, found.gl_pathv[i], depth - 1);
			globfree(&found);
		} else {
			search_add(search, root, line, strcspn(line, " \t"));
		}
	}
	if (file)
		fclose(file);
}

/* Starts a search in the order of ld.so(8).  `path` is the file that needs the library. */
static void search_start(struct search *search, const struct elf_facts *facts, const char *path,
			 const char *root)
{
	static const char *const defaults[] = {
		"/lib32", "/usr/lib32", "/lib/i386-linux-gnu", "/usr/lib/i386-linux-gnu",
		"/lib",	  "/usr/lib"
	};
	const char *environment = getenv("LD_LIBRARY_PATH");
	char conf[MAX_HOST_PATH];

	search->n = 0;
	if (!*facts->runpath)
		search_add_list(search, facts->rpath, path);
	search_add_list(search, environment ? environment : "", path);
	search_add_list(search, facts->runpath, path);
	for (size_t i = 0; i < ARRAY_LEN(defaults); i++)
		search_add(search, root, defaults[i], strlen(defaults[i]));
	snprintf(conf, sizeof conf, "%s/etc/ld.so.conf", root);
	search_add_conf(search, root, conf, MAX_CONF_DEPTH);
}

static bool find_library(const struct search *search, const char *name, char *path)
{
	struct problem ignored;

	if (strchr(name, '/'))
		return snprintf(path, MAX_HOST_PATH, "%s", name) < MAX_HOST_PATH &&
		       elfdeps_file_kind(path, &ignored) == FILE_ELF32;
	for (size_t i = 0; i < search->n; i++)
		if (snprintf(path, MAX_HOST_PATH, "%s/%s", search->folder[i], name) <
			    MAX_HOST_PATH &&
		    elfdeps_file_kind(path, &ignored) == FILE_ELF32)
			return true;
	return false;
}

static bool is_known(const struct elfdeps *deps, const char *name)
{
	for (size_t i = 0; i < deps->n; i++)
		if (!strcmp(deps->library[i].name, name))
			return true;
	return false;
}

static int add_needed(struct elfdeps *deps, const struct elf_facts *facts, const char *path,
		      const char *root, struct problem *p)
{
	static struct search search;
	char hint[160];

	search_start(&search, facts, path, root);
	for (size_t i = 0; i < facts->n_needed; i++) {
		const char *name = facts->needed[i];
		struct library *library = &deps->library[deps->n];

		/* Programs may be linked to the loader, as to a library. */
		if (is_known(deps, name) ||
		    (*deps->loader && !strcmp(strrchr(deps->loader, '/') + 1, name)))
			continue;
		if (deps->n == MAX_LIBRARIES)
			return problem(p, "%s needs more than %d libraries", path, MAX_LIBRARIES);
		if (!find_library(&search, name, library->path))
			return problem(p, "%s needs the 32-bit library %s, which is not on this "
				       "computer; %s",
				path, name, package_hint(name, hint, sizeof hint));
		snprintf(library->name, sizeof library->name, "%s", name);
		deps->n++;
	}
	return 0;
}

static int set_loader(struct elfdeps *deps, const char *loader, const char *path, const char *root,
		      struct problem *p)
{
	char on_host[2 * MAX_HOST_PATH], hint[160];
	struct problem ignored;

	if (*loader != '/')
		return problem(p, "%s names the loader %s, which is not an absolute path", path,
			       loader);
	snprintf(on_host, sizeof on_host, "%s%s", root, loader);
	if (elfdeps_file_kind(on_host, &ignored) != FILE_ELF32)
		return problem(p, "%s needs the 32-bit loader %s, which is not on this computer; "
			       "%s",
			       path, loader, package_hint(loader, hint, sizeof hint));
	snprintf(deps->loader, sizeof deps->loader, "%s", loader);
	return 0;
}

int elfdeps_add(struct elfdeps *deps, const char *path, const char *root, struct problem *p)
{
	static struct elf_facts facts;
	size_t next = deps->n;

	if (read_facts(path, &facts, p))
		return -1;
	if (*facts.loader && set_loader(deps, facts.loader, path, root, p))
		return -1;
	if (add_needed(deps, &facts, path, root, p))
		return -1;
	for (; next < deps->n; next++)
		if (read_facts(deps->library[next].path, &facts, p) ||
		    add_needed(deps, &facts, deps->library[next].path, root, p))
			return -1;
	return 0;
}

void elfdeps_add_optional(struct elfdeps *deps, const char *name, const char *root)
{
	static struct elf_facts facts;
	struct problem ignored;

	memset(&facts, 0, sizeof facts);
	snprintf(facts.needed[facts.n_needed++], MAX_LIBRARY_NAME, "%s", name);
	add_needed(deps, &facts, "", root, &ignored);
}

enum { MAX_VERSIONS = 128 };
struct versions {
	char name[MAX_VERSIONS][MAX_LIBRARY_NAME];
	size_t n;
};

static void read_versions(Elf *elf, Elf_Scn *section, const GElf_Shdr *header,
			  struct versions *versions)
{
	Elf_Data *data = elf_getdata(section, NULL);
	GElf_Verdef definition;
	GElf_Verdaux name;
	uint64_t offset = 0;

	while (data && versions->n < MAX_VERSIONS && offset <= INT_MAX &&
	       gelf_getverdef(data, (int)offset, &definition) &&
	       offset + definition.vd_aux <= INT_MAX &&
	       gelf_getverdaux(data, (int)(offset + definition.vd_aux), &name)) {
		const char *text = elf_strptr(elf, header->sh_link, name.vda_name);

		if (text && !(definition.vd_flags & VER_FLG_BASE))
			snprintf(versions->name[versions->n++], MAX_LIBRARY_NAME, "%s", text);
		if (!definition.vd_next)
			return;
		offset += definition.vd_next; /* only forwards, whatever the file says */
	}
}

/* Finds the versions that a library defines; none if it cannot be read. */
static void find_versions(const char *path, struct versions *versions)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	Elf *elf;

	versions->n = 0;
	elf_version(EV_CURRENT);
	elf = fd < 0 ? NULL : elf_begin(fd, ELF_C_READ, NULL);
	while (elf && (section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, &header) && header.sh_type == SHT_GNU_verdef)
			read_versions(elf, section, &header, versions);
	elf_end(elf);
	if (fd >= 0)
		close(fd);
}

bool elfdeps_defines_all(const char *library, const char *other)
{
	static struct versions has, needs;
	size_t i, k;

	find_versions(library, &has);
	find_versions(other, &needs);
	for (i = 0; i < needs.n; i++) {
		for (k = 0; k < has.n && strcmp(has.name[k], needs.name[i]); k++)
			;
		if (k == has.n)
			return false;
	}
	return has.n > 0;
}

const char *elfdeps_folder(const struct elfdeps *deps, char *folder, size_t bytes)
{
	for (size_t i = 0; i < deps->n; i++)
		if (!strcmp(deps->library[i].name, "libc.so.6")) {
			const char *slash = strrchr(deps->library[i].path, '/');

			snprintf(folder, bytes, "%.*s", (int)(slash - deps->library[i].path),
				 deps->library[i].path);
			return folder;
		}
	return "/lib";
}
