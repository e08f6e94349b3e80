// SPDX-License-Identifier: GPL-2.0-only
// Bit fields, in whichever way the compiler describes them.

typedef unsigned int u32;
enum mode { SLOW, FAST };

struct bits {
	unsigned a : 3;
	int b : 7;
	unsigned : 4;
	u32 c : 18;
	unsigned d : 1;
	char e;
	unsigned char f : 2;
	unsigned short g : 9;
	unsigned long long h : 40;
	long long i : 24;
	enum mode m : 2;
	_Bool n : 1;
	volatile unsigned o : 5;
} bits;
//=1 struct bits { unsigned int a:3 @0; int b:7 @3; u32 c:18 @14; unsigned int d:1 @32; char e @40; unsigned char f:2 @48; unsigned short g:9 @50; unsigned long long h:40 @64; long long i:24 @104; enum mode m:2 @128; _Bool n:1 @130; unsigned int volatile o:5 @131 } size 24

struct zero_width {
	unsigned a : 3;
	unsigned : 0;
	unsigned b : 3;
} zero_width;
//=1 struct zero_width { unsigned int a:3 @0; unsigned int b:3 @32 } size 8

struct packed_bits {
	unsigned char c;
	unsigned long long wide : 50;
	unsigned tail : 6;
} __attribute__((packed)) packed_bits;
//=1 struct packed_bits { unsigned char c @0; unsigned long long wide:50 @8; unsigned int tail:6 @58 } size 8

union bit_union {
	unsigned a : 5;
	unsigned long long b : 33;
	int whole;
} bit_union;
//=1 union bit_union { unsigned int a:5 @0; unsigned long long b:33 @0; int whole @0 } size 8

struct nested_bits {
	int x;
	struct {
		unsigned a : 1;
		unsigned b : 31;
	};
	union {
		unsigned c : 12;
		unsigned d;
	} u[2];
} nested_bits;
//=1 struct nested_bits { int x @0; struct { unsigned int a:1 @0; unsigned int b:31 @1 } size 4 @32; union { unsigned int c:12 @0; unsigned int d @0 } size 4 [2] u @64 } size 16
