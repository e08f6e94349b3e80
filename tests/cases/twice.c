// SPDX-License-Identifier: GPL-2.0-only
// Two units that define functions of the same name.

#define noinline __attribute__((noinline, used))
struct s { int a; };
struct fw;
static noinline int same(int a) { return a + 1; }
static noinline int parameter(int a) { return a + 1; }
static noinline int constant(const struct s *s) { return s->a; }
static noinline int returned(int a) { return a; }
static noinline int name(int a) { return a; }
static noinline int aggregate(struct s *s) { return s->a; }
static noinline int count(int a, int b) { return a + b; }
static noinline int callback(int (*f)(int)) { return f(1); }
static noinline int array(int (*f)[3]) { return (*f)[1]; }
static noinline int forward(struct fw *f) { return f != 0; }
static noinline int unique(int a) { return a; }
//---
#define noinline __attribute__((noinline, used))
struct s { int a; };
struct other { int b; };
struct fw { int a; };
static noinline int same(int a) { return a + 1; }
static noinline int parameter(long a) { return a + 1; }
static noinline int constant(struct s *s) { return s->a; }
static noinline long returned(int a) { return a; }
static noinline int name(int b) { return b; }
static noinline int aggregate(struct other *s) { return s->b; }
static noinline int count(int a) { return a; }
static noinline int callback(int (*f)(long)) { return f(1); }
static noinline int array(int (*f)[4]) { return (*f)[1]; }
static noinline int forward(struct fw *f) { return f->a; }

// A tracer that attaches by name gets either, so definitions have to agree; and where they do, there are two addresses.
//=0 func int parameter(
//=0 func long returned(
//=0 func int returned(
//=0 func int aggregate(
//=0 func int count(
//=0 func int callback(
//=0 func int array(
//=0 func int same(
//=1 func int unique(int a)
