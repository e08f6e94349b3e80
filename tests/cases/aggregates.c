// SPDX-License-Identifier: GPL-2.0-only
// Structs, unions and arrays.

struct plain {
	char c;
	short s;
	int i;
	long long ll;
} plain;
//=1 struct plain { char c @0; short s @16; int i @32; long long ll @64 } size 16

struct empty {
} empty;
//=1 struct empty { } size 0

struct anonymous {
	int first;
	struct {
		int a;
		union {
			int b;
			char c;
		};
	};
	union {
		long d;
		void *e;
	} named;
} anonymous;
//=1 struct anonymous { int first @0; struct { int a @0; union { int b @0; char c @0 } size 4 @32 } size 8 @32; union { long d @0; void * e @0 } size 8 named @128 } size 24

struct flexible {
	int n;
	char data[];
} flexible;
//=1 struct flexible { int n @0; char [0] data @32 } size 4

struct zero {
	int before[0];
	int n;
	struct plain after[0];
} zero;
//=1 struct zero { int [0] before @0; int n @0; struct plain [0] after @64 } size 8

typedef int row[4];
typedef row table[3];
struct arrays {
	char bytes[2][3][4];
	row one;
	table three;
	int *pointers[6];
	int (*to_array)[7];
	char open[][2];
} arrays;
//=1 typedef row: int [4]
//=1 struct arrays { char [2][3][4] bytes @0; row one @192; table three @320; int * [6] pointers @704; int [7] * to_array @1088; char [0][2] open @1152 } size 144

// Arrays of arrays of another name: compilers see through the names or not.
struct named_arrays {
	row rows[2];
	table tables[5];
} named_arrays;

union all {
	int i;
	struct plain p;
	char bytes[3];
} all;
//=1 union all { int i @0; struct plain p @0; char [3] bytes @0 } size 16

struct packed {
	char c;
	int i;
	long l;
} __attribute__((packed)) packed;
//=1 struct packed { char c @0; int i @8; long l @40 } size 13

struct aligned {
	char c;
	int i __attribute__((aligned(32)));
} __attribute__((aligned(64))) aligned;
//=1 struct aligned { char c @0; int i @256 } size 64

struct list {
	struct list *next, **previous;
} list;
//=1 struct list { struct list * next @0; struct list * * previous @64 } size 16

struct outer {
	struct inner {
		int x;
	} in;
	enum color {
		RED,
		GREEN = 5,
	} color;
	struct inner *more;
} outer;
//=1 struct inner { int x @0 } size 4
//=1 enum color:4 { RED=0, GREEN=5 }
//=1 struct outer { struct inner in @0; enum color color @32; struct inner * more @64 } size 16

struct opaque;
struct holder {
	struct opaque *o;
	union hidden *u;
} holder;
//=1 fwd struct opaque
//=1 fwd union hidden
//=1 struct holder { struct opaque * o @0; union hidden * u @64 } size 16

void *nothing;
