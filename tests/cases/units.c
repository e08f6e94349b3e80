// SPDX-License-Identifier: GPL-2.0-only
// What several units say of the same names.

struct same { int a; struct same *next; };
struct conflict { int a; };
struct full;
struct holder { struct full *f; struct same *s; };
struct uses { struct conflict *c; };
enum e;
struct has_e { enum e *e; };
typedef struct conflict conflict_t;
struct same same;
struct holder holder;
struct uses uses;
struct has_e has_e;
conflict_t conflict;
int local(struct holder *h)
{
	struct inside { int x; } i = { 3 };

	return ((volatile struct inside *)&i)->x;
}
int agreed(struct conflict *c) { return c->a; }
//---
struct same { int a; struct same *next; };
struct conflict { long b; };
struct full { int complete; struct same *s; };
struct holder { struct full *f; struct same *s; };
struct uses { struct conflict *c; };
enum e { E1, E2 };
struct has_e { enum e *e; };
typedef struct conflict conflict_t;
struct same same2;
struct holder holder2;
struct uses uses2;
struct has_e has_e2;
enum e e;
struct full full;
conflict_t conflict2;
int local2(struct holder *h)
{
	struct inside { long y; } i = { 3 };

	return ((volatile struct inside *)&i)->y;
}
//---
struct full;
struct conflict;
struct holder { struct full *f; struct same *s; };
struct holder holder3;
struct conflict *cc;
struct anon { struct { int a; } x; union { int b; }; } anon;
struct sole;
struct sole *declared;
//---
struct anon { struct { int a; } x; union { int b; }; } anon2;
struct ring_a { struct ring_b *b; } ra;
struct ring_b { struct ring_a *a; } rb;
struct sole { int only; } sole;
//---
struct ring_a { struct ring_b *b; } ra2;
struct ring_b { struct ring_a *a; int more; } rb2;

// Merged: one of each, whether the unit knew it in full or not.
//=1 struct same { int a @0; struct same * next @64 } size 16
//=1 struct holder { struct full * f @0; struct same * s @64 } size 16
//=1 struct full { int complete @0; struct same * s @64 } size 16
//=1 struct anon { struct { int a @0 } size 4 x @0; union { int b @0 } size 4 @32 } size 8
//=1 struct has_e { enum e * e @0 } size 8
//=1 enum e:4 { E1=0, E2=1 }
//=1 struct sole { int only @0 } size 4
//=0 fwd struct full
//=0 fwd struct sole
// Kept apart, with all that refers to them; and a forward that could mean either.
//=1 struct conflict { int a @0 } size 4
//=1 struct conflict { long b @0 } size 8
//=2 struct uses { struct conflict * c @0 } size 8
//=2 typedef conflict_t: struct conflict
//=1 fwd struct conflict
//=1 struct inside { int x @0 } size 4
//=1 struct inside { long y @0 } size 8
//=2 struct ring_a { struct ring_b * b @0 } size 8
