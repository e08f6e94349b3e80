// SPDX-License-Identifier: GPL-2.0-only
// const, volatile and restrict wherever they can stand.

struct s {
	const int a;
	volatile int b;
	int *const d;
	const int *e;
	const int *volatile f;
	int *restrict g;
	const void *k;
	volatile void *const l;
	const struct s *const *m;
} *s;
//=1 struct s { int const a @0; int volatile b @32; int * const d @64; int const * e @128; int const * volatile f @192; int * restrict g @256; void const * k @320; void volatile * const l @384; struct s const * const * m @448 } size 64

typedef const int cint;
typedef cint *volatile vp;
vp v;
const vp *w;
//=1 typedef cint: int const
//=1 typedef vp: cint * volatile

int f(const int a, volatile int b, char *restrict c, const char *const *d) { return a + b + *c + **d; }
//=1 func int f(int const a, int volatile b, char * restrict c, char const * const * d)

// Both at once, and on arrays: compilers nest them as they like.
struct both { const int i[3]; int *const j[2]; const volatile int c; const volatile void *restrict const r; } both;
const int constant(void) { return 1; }
const char name[] = "x";
