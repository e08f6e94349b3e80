// SPDX-License-Identifier: GPL-2.0-only
// Integers of two registers, where there are some.

struct s {
	__int128 i;
	unsigned __int128 u;
	unsigned __int128 a : 100;
	unsigned __int128 b : 28;
} s;
//=1 int __int128: 128 bits signed
//=1 int unsigned __int128: 128 bits
//=1 struct s { __int128 i @0; unsigned __int128 u @128; unsigned __int128 a:100 @256; unsigned __int128 b:28 @356 } size 48

int first(__int128 a, int b) { return a + b; }
int last(long a, long b, long c, long d, long e, __int128 f, int g) { return f + g + a; }
//=1 func int last(long a, long b, long c, long d, long e, __int128 f, int g)
