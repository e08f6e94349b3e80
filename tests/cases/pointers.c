// SPDX-License-Identifier: GPL-2.0-only
// Pointers to functions, and functions of all shapes.

struct ops {
	int (*open)(struct ops *, const char *name, ...);
	void (*close)(void);
	int (*(*twice)(int))(long);
	int (*table[2][3])(int, int);
	void *(*alloc)(unsigned long size);
	void (*callback)(void (*inner)(int, ...), void *);
	int (**indirect)(int);
	int (*decays)(int a[3], int (*b)[4], int c(void));
} ops;
//=1 struct ops { int (struct ops *, char const *, ...) * open @0; void () * close @64; int (long) * (int) * twice @128; int (int, int) * [2][3] table @192; void * (unsigned long) * alloc @576; void (void (int, ...) *, void *) * callback @640; int (int) * * indirect @704; int (int *, int [4] *, int () *) * decays @768 } size 104

typedef int handler(int, void *);
typedef handler *handler_ptr;
handler_ptr h;
handler *hh[3];
const handler_ptr ch;
//=1 typedef handler: int (int, void *)
//=1 typedef handler_ptr: handler *

int take(handler *a, handler b, int (*c)(void), ...) { return a(1, 0) + b(2, 0) + c(); }
handler_ptr give(int i) { return hh[i]; }
int (*give2(int i))(int, void *) { return hh[i]; }
void nothing(void) { }
int unnamed(int, int);
int unnamed(int a, int b) { return a + b; }
int old(a, b) int a; char b; { return a + b; }
int variadic(const char *format, ...) { return *format; }
void *pass(void *p, void **q, const void *r) { return p; }
//=1 func int take(handler * a, handler * b, int () * c, ...)
//=1 func handler_ptr give(int i)
//=1 func int (int, void *) * give2(int i)
//=1 func void nothing()
//=1 func int unnamed(int a, int b)
//=1 func int old(int a, char b)
//=1 func int variadic(char const * format, ...)
//=1 func void * pass(void * p, void * * q, void const * r)
