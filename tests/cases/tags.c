// SPDX-License-Identifier: GPL-2.0-only
// Tags on declarations and on what pointers point to.
//: compilers clang

#define tag(x) __attribute__((btf_decl_tag(x)))
#define type_tag(x) __attribute__((btf_type_tag(x)))
#define __percpu __attribute__((section(".data..percpu")))

struct s {
	int a tag("member");
	int b tag("one") tag("two");
	int bits : 3 tag("bits");
	int type_tag("user") *p;
	int type_tag("a") *type_tag("b") *pp;
	int type_tag("x") type_tag("y") *multi;
	const char type_tag("rcu") *const cp;
	struct s type_tag("rcu") *next;
	void type_tag("v") *v;
} tag("struct") tag("struct2") s;
//=1 struct s { int a @0; int b @32; int bits:3 @64; int tag(user) * p @128; int tag(a) * tag(b) * pp @192; int tag(x) tag(y) * multi @256; char const tag(rcu) * const cp @320; struct s tag(rcu) * next @384; void tag(v) * v @448 } size 64
//=1 decl_tag "member" on struct s member 0
//=1 decl_tag "one" on struct s member 1
//=1 decl_tag "two" on struct s member 1
//=1 decl_tag "bits" on struct s member 2
//=1 decl_tag "struct" on struct s
//=1 decl_tag "struct2" on struct s
//=0 [type_tag] decl_tag
//=1 [decl_tag] struct s { int a @0; int b @32; int bits:3 @64; int * p @128; int * * pp @192; int * multi @256; char const * const cp @320; struct s * next @384; void * v @448 } size 64

union u { int a tag("um"); } tag("union") u;
//=1 decl_tag "um" on union u member 0
//=1 decl_tag "union" on union u

typedef int t tag("typedef");
typedef struct { int a tag("anonymous member"); } anonymous tag("typedef of anonymous");
t tt;
anonymous aa;
//=1 decl_tag "typedef" on typedef t
//=1 decl_tag "typedef of anonymous" on typedef anonymous
//=1 decl_tag "anonymous member" on struct (anonymous) member 0

int v tag("variable");
__percpu int pv tag("percpu variable") = 3;
static __percpu int sv tag("static variable") __attribute__((used)) = 4;
//=1 decl_tag "percpu variable" on var pv
//=1 decl_tag "static variable" on var sv
//=0 decl_tag "variable"
//=1 [default,global_var] decl_tag "variable" on var v

tag("function") int f(struct s *p tag("parameter"), int b, int c tag("p1") tag("p2")) { return p->a + b + c + sv; }
tag("f2") tag("f3") int type_tag("ret") *g(int type_tag("user") *p) { return p; }
extern tag("declared") int declared(int x tag("lost"));
int declared(int x) { return x; }
//=1 decl_tag "function" on func f
//=1 decl_tag "parameter" on func f parameter 0
//=1 decl_tag "p1" on func f parameter 2
//=1 decl_tag "p2" on func f parameter 2
//=1 func int tag(ret) * g(int tag(user) * p)
//=1 decl_tag "f2" on func g
//=1 decl_tag "f3" on func g
//=1 decl_tag "declared" on func declared
