// SPDX-License-Identifier: GPL-2.0-only
// Functions that the kernel offers to BPF programs, as its sets in .BTF_ids list them.

#define SET(name, size, flags) \
	".local __BTF_ID__set8__" name "\n.type __BTF_ID__set8__" name ", %object\n" \
	".size __BTF_ID__set8__" name ", " size "\n__BTF_ID__set8__" name ": .long 0, " flags "\n"
#define ID(name, number, flags) \
	".local __BTF_ID__func__" name "__" number "\n.type __BTF_ID__func__" name "__" number ", %object\n" \
	".size __BTF_ID__func__" name "__" number ", 4\n__BTF_ID__func__" name "__" number ": .long 0, " flags "\n"

__asm__(".pushsection .BTF_ids,\"a\"\n"
	SET("kfuncs", "8 + 5 * 8", "1")
	ID("simple", "1", "0")
	ID("fast", "2", "1 << 12")
	ID("arena", "3", "7 << 13")
	ID("double__underscore", "4", "0")
	ID("missing", "5", "0")
	SET("others", "8 + 1 * 8", "0")
	ID("helper", "6", "0")
	".popsection\n");

#define __used __attribute__((used, noinline))
__used int simple(int x) { return x; }
//=1 decl_tag "bpf_kfunc" on func simple
//=0 [decl_tag] decl_tag
//=0 [decl_tag_kfuncs] decl_tag

__used void *fast(void *p) { return p; }
//=1 decl_tag "bpf_kfunc" on func fast
//=1 decl_tag "bpf_fastcall" on func fast

__used void *arena(void *p, int *q, int x) { return p; }
//=1 func void * arena(void * p, int * q, int x)
//=1 [default,attributes] func void attribute(address_space(1)) * arena(void attribute(address_space(1)) * p, int attribute(address_space(1)) * q, int x)
//=1 decl_tag "bpf_kfunc" on func arena

__used int double__underscore(int x) { return x; }
//=1 decl_tag "bpf_kfunc" on func double__underscore

__used int helper(int x) { return x; }
//=1 func int helper(int x)
//=0 decl_tag "bpf_kfunc" on func helper
