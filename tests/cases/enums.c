// SPDX-License-Identifier: GPL-2.0-only
// Enumerations, narrow and wide, and some that are only declared.

enum small { ZERO, ONE, TEN = 10 } small;
//=1 enum small:4 { ZERO=0, ONE=1, TEN=10 }

enum negative { MINUS = -1, PLUS = 1, LEAST = -2147483647 - 1 } negative;
//=1 enum signed negative:4 { MINUS=-1, PLUS=1, LEAST=-2147483648 }

enum top { TOP = 0xffffffff } top;
//=1 enum top:4 { TOP=4294967295 }

enum wide { WIDE = 1ULL << 40, NARROW = 3 } wide;
//=1 enum64 wide:8 { WIDE=1099511627776, NARROW=3 }
// Without the feature, what a reader can make of it: the lower half of each value.
//=1 [float] enum wide:8 { WIDE=0, NARROW=3 }

enum wide_signed { BELOW = -1LL << 40, UNDER = -1, OVER = 1 } wide_signed;
//=1 enum64 signed wide_signed:8 { BELOW=-1099511627776, UNDER=-1, OVER=1 }

enum mixed { LOW = -1, HIGH = 0xffffffffLL } mixed;
//=1 enum64 signed mixed:8 { LOW=-1, HIGH=4294967295 }

enum huge { HUGE = 0xffffffffffffffffULL } huge;
//=1 enum64 huge:8 { HUGE=18446744073709551615 }

enum tiny { T0, T1 = 200 } __attribute__((packed)) tiny;
//=1 enum tiny:1 { T0=0, T1=200 }

enum tiny_signed { S0 = -1, S1 = 100 } __attribute__((packed)) tiny_signed;
//=1 enum signed tiny_signed:1 { S0=-1, S1=100 }

enum middle { M0, M1 = 0x1234 } __attribute__((packed)) middle;
//=1 enum middle:2 { M0=0, M1=4660 }

typedef enum { A, B } nameless;
nameless n;
//=1 typedef nameless: enum:4 { A=0, B=1 }

struct holder { enum { C, D } e; } holder;
//=1 struct holder { enum:4 { C=0, D=1 } e @0 } size 4

enum unknown;
enum unknown *forward;
//=1 enum unknown:4 { }

enum small f(enum small s, enum unknown *n) { return s; }
//=1 func enum small f(enum small s, enum unknown * n)
