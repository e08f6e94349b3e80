// SPDX-License-Identifier: GPL-2.0-only
// Functions: how their parameters arrive decides whether they are listed.

struct big { long a, b, c; };
struct two { long a, b; };
struct small { int a; };
struct pk { char a; long b; } __attribute__((packed));
struct fl { float x, y; };
int sink;

#define noinline __attribute__((noinline))

int big_by_value(struct big b, int x) { return b.a + x; }
int two_by_value(struct two t, int x) { return t.b + x; }
int small_by_value(struct small s, int x) { return s.a + x; }
int float_struct(struct fl f, int x) { return f.x + x; }
struct two return_two(int a) { return (struct two){ a, a }; }
_Bool boolean(_Bool a, char b, short c) { return a && b > c; }
//=1 func int big_by_value(struct big b, int x)
//=1 func int two_by_value(struct two t, int x)
//=1 func int small_by_value(struct small s, int x)
//=1 func int float_struct(struct fl f, int x)
//=1 func struct two return_two(int a)
//=1 func _Bool boolean(_Bool a, char b, short c)

// More than fit registers: listed, unless a packed struct lies on the stack, whose place is anyone's guess.
int seven(long a, long b, long c, long d, long e, long f, long g) { return a + b + c + d + e + f + g; }
int packed_stack(long a, long b, long c, long d, long e, long f, struct pk p) { return a + p.b; }
int packed_first(struct pk p, long a) { return a + p.b; }
//=1 func int seven(long a, long b, long c, long d, long e, long f, long g)
//=0 func int packed_stack(
//=1 func int packed_first(struct pk p, long a)

// A parameter that is not used still arrives; it counts off the registers.
int none_used(int a, int b) { return 3; }
int reuse(int unused, int used) { return used; }
//=1 func int none_used(int a, int b)
//=1 func int reuse(int unused, int used)

// Not functions of their own: inlined ones, halves that are rarely run, aliases.
static inline int inlined(int a, int b) { return a * b + sink; }
int cold(int a)
{
	if (__builtin_expect(a == 3, 0)) {
		sink = 4;
		__builtin_trap();
	}
	return a;
}
__attribute__((weak)) int weak(int a) { return a; }
int alias(int a) __attribute__((alias("weak")));
//=0 func int inlined(
//=1 func int cold(int a)
//=0 func int cold.cold
//=1 func int weak(int a)
//=0 func int alias(

// What compilers split, specialize and strip of parameters; each has its own mind there.
static noinline int isra_value(struct two *t) { return sink += t->a; }
static noinline int constprop(int a, int b, int c) { for (int i = 0; i < a; i++) sink += b * c; return sink; }
static noinline int unused_parameter(int a, int b) { return sink += a; }
static noinline int unused_first(int a, int b) { return sink += b; }
static noinline void plain(int a) { sink += a; }
static noinline int kept(int a, int b) { return sink += a * b; }
int floats(float a, double b, int c) { return a + b + c; }
int two_over(long a, long b, long c, long d, long e, struct two t, long g) { return a + t.a + g; }
int clobbered(int a, int b) { a = sink; sink = b; return a; }
int part(int a, int b)
{
	if (a)
		return b;
	for (int i = 0; i < 100; i++)
		sink += i * b + sink / 7;
	return sink;
}
static int tail(int n) { return n ? n * tail(n - 1) : 1; }
static noinline int fnptr(int (*f)(int), int x) { return f(x) + f(x + 1); }
int caller(struct two *t, int n)
{
	plain(n);
	return isra_value(t) + constprop(n, 3, 5) + constprop(n + 1, 3, 5) + unused_parameter(n, 4) + unused_first(1, n) +
	       kept(n, n + 1) + inlined(n, n) + part(n, n) + tail(n) + fnptr(weak, n);
}
int caller2(int n) { return part(n, 3) + part(0, n) + unused_parameter(n, n); }
//=1 func void plain(int a)
//=1 func int kept(int a, int b)
