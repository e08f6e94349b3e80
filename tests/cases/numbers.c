// SPDX-License-Identifier: GPL-2.0-only
// Base types. Floating-point ones are FLOAT, or integers for readers that do not know FLOAT.

struct numbers {
	char c;
	signed char sc;
	unsigned char uc;
	short s;
	unsigned short us;
	int i;
	unsigned u;
	long l;
	unsigned long ul;
	long long ll;
	unsigned long long ull;
	_Bool b;
	float f;
	double d;
	long double ld;
	_Complex int ci;
} numbers;
//=1 int signed char: 8 bits signed
//=1 int unsigned char: 8 bits
//=1 int short: 16 bits signed
//=1 int unsigned short: 16 bits
//=1 int int: 32 bits signed
//=1 int unsigned int: 32 bits
//=1 int long: 64 bits signed
//=1 int unsigned long: 64 bits
//=1 int long long: 64 bits signed
//=1 int unsigned long long: 64 bits
//=1 int _Bool: 8 bits bool
//=1 float float: 4 bytes
//=1 float double: 8 bytes
//=1 float long double: 16 bytes
//=1 [var] int float: 32 bits
//=1 [var] int double: 64 bits
//=1 [var] int long double: 128 bits

// pahole counts integer registers off along the parameters; those in others do not fit the count.
float h(int a, char *b) { return a; }
float g(float a, double b, long double *c) { return a; }
//=1 func float h(int a, char * b)
//=0 func float g(
