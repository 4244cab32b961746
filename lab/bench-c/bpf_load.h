/* SPDX-License-Identifier: Apache-2.0 */
/* Loads one program with one global variable from an object of clang, by bare system calls. */
#ifndef NETSERV_BENCH_BPF_LOAD_H
#define NETSERV_BENCH_BPF_LOAD_H

#include "common.h"

#include <elf.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static inline int bpf_call(enum bpf_cmd command, union bpf_attr *attr, const char *what)
{
	int fd = (int)syscall(SYS_bpf, command, attr, sizeof(*attr));

	if (fd < 0)
		die(what);
	return fd;
}

static inline const Elf64_Shdr *elf_section(const char *file, const char *name)
{
	const Elf64_Ehdr *elf = (const Elf64_Ehdr *)file;
	const Elf64_Shdr *sections = (const Elf64_Shdr *)(file + elf->e_shoff);
	const char *names = file + sections[elf->e_shstrndx].sh_offset;

	for (int i = 0; i < elf->e_shnum; i++)
		if (!strcmp(names + sections[i].sh_name, name))
			return &sections[i];
	fprintf(stderr, "the object has no section %s\n", name);
	exit(1);
}

/* What a program is, and the map that it knows by a name in the section `maps`, if there is one. */
struct bpf_kind {
	enum bpf_prog_type type;
	enum bpf_attach_type attached;
	int map;
};

/* Returns the descriptor of a program, and in *variable the memory of its global variable of so many bytes. */
static inline int bpf_load(struct bpf_kind kind, const char *directory, const char *name, size_t bytes, void **variable)
{
	static char log[65536];
	char path[512];
	struct stat status;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &status) < 0)
		die(path);
	char *file = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);

	close(fd);
	if (file == MAP_FAILED)
		die(path);
	union bpf_attr map = {
		.map_type = BPF_MAP_TYPE_ARRAY,
		.key_size = 4,
		.value_size = (uint32_t)((bytes + 7) / 8 * 8),
		.max_entries = 1,
		.map_flags = BPF_F_MMAPABLE,
	};
	int map_fd = bpf_call(BPF_MAP_CREATE, &map, "making a BPF map");

	*variable = mmap(NULL, map.value_size, PROT_READ | PROT_WRITE, MAP_SHARED, map_fd, 0);
	if (*variable == MAP_FAILED)
		die("mapping a BPF map");
	const Elf64_Shdr *code = elf_section(file, "program"), *relocations = elf_section(file, ".relprogram");
	const Elf64_Sym *symbols = (const Elf64_Sym *)(file + elf_section(file, ".symtab")->sh_offset);
	const Elf64_Rel *relocation = (const Elf64_Rel *)(file + relocations->sh_offset);
	struct bpf_insn *instructions = (struct bpf_insn *)(file + code->sh_offset);
	const Elf64_Shdr *sections = (const Elf64_Shdr *)(file + ((const Elf64_Ehdr *)file)->e_shoff);

	for (size_t i = 0; i < relocations->sh_size / sizeof(*relocation); i++) {
		struct bpf_insn *load = &instructions[relocation[i].r_offset / sizeof(*load)];
		const Elf64_Sym *symbol = &symbols[ELF64_R_SYM(relocation[i].r_info)];

		if (symbol->st_shndx == elf_section(file, ".bss") - sections) {
			load[1].imm = load[0].imm + (int)symbol->st_value;
			load[0].imm = map_fd;
			load[0].src_reg = BPF_PSEUDO_MAP_VALUE;
		} else {
			load[0].imm = kind.map;
			load[0].src_reg = BPF_PSEUDO_MAP_FD;
		}
	}
	union bpf_attr program = {
		.prog_type = kind.type,
		.expected_attach_type = kind.attached,
		.insns = (uint64_t)(uintptr_t)instructions,
		.insn_cnt = (uint32_t)(code->sh_size / sizeof(*instructions)),
		.license = (uint64_t)(uintptr_t) "Apache-2.0",
	};
	int program_fd = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &program, sizeof(program));

	if (program_fd < 0) {
		int error = errno;

		/* Once more, for the verifier's words. */
		program.log_buf = (uint64_t)(uintptr_t)log;
		program.log_size = sizeof(log);
		program.log_level = 1;
		syscall(SYS_bpf, BPF_PROG_LOAD, &program, sizeof(program));
		fprintf(stderr, "%s", log);
		errno = error;
		die(path);
	}
	return program_fd;
}

#endif
