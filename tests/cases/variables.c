// SPDX-License-Identifier: GPL-2.0-only
// Variables: per-CPU ones always, all others with global_var.

#define __percpu __attribute__((section(".data..percpu")))

struct state { long a[4]; char c; };

__percpu int counter = 1;
__percpu struct state state = { .c = 1 };
static __percpu unsigned long hidden __attribute__((used)) = 2;
__percpu char buffer[3] = { 1 };
extern __percpu int declared;
__percpu int declared = 7;
__percpu const char *text = "c";
__percpu int __UNIQUE_ID_x1 = 3;
__percpu struct { int inner; } nameless = { 4 };
//=1 var int counter in .data..percpu @* size 4
//=1 var struct state state in .data..percpu @* size 40
//=1 var static unsigned long hidden in .data..percpu @* size 8
//=1 var char [3] buffer in .data..percpu @* size 3
//=1 var int declared in .data..percpu @* size 4
//=1 var char const * text in .data..percpu @* size 8
//=1 var struct { int inner @0 } size 4 nameless in .data..percpu @* size 4
//=1 var int first in .data..percpu @* size 4
//=0 var int __UNIQUE_ID
//=0 [float] var

int initialized = 1;
int zeroed;
static int private_zeroed __attribute__((used));
static struct state private_initialized __attribute__((used)) = { { 1 } };
const int constant_data = 5;
int *pointer = &initialized;
extern int announced;
int announced = 8;
extern int missing;
struct empty { } empty;
int array[10] = { 1 };
struct flex { int n; char data[]; } flex = { 2, "ab" };
union { int a; float b; } u = { 1 };
volatile int vol = 1;
void (*function)(void) = (void (*)(void))1;
int in_section __attribute__((section("my.section"))) = 3;
__thread int tls = 3;
//=1 [default,global_var] var int initialized in .data @* size 4
//=1 [default,global_var] var int zeroed in .bss @* size 4
//=1 [default,global_var] var static int private_zeroed in .bss @* size 4
//=1 [default,global_var] var static struct state private_initialized in .data @* size 40
//=1 [default,global_var] var int const constant_data in .rodata @* size 4
//=1 [default,global_var] var int * pointer in .data @* size 8
//=1 [default,global_var] var int announced in .data @* size 4
//=1 [default,global_var] var int [10] array in .data @* size 40
//=1 [default,global_var] var struct flex flex in .data @* size 4
//=1 [default,global_var] var union { int a @0; float b @0 } size 4 u in .data @* size 4
//=1 [default,global_var] var int volatile vol in .data @* size 4
//=1 [default,global_var] var void () * function in .data @* size 8
//=1 [default,global_var] var int in_section in my.section @* size 4
//=1 [default,global_var] var int counter in .data..percpu @* size 4
//=0 [default,global_var] var int missing
//=0 [default,global_var] var struct empty
//=0 [default,global_var] var int tls

int f(void)
{
	static int local __attribute__((used)) = 3;
	static __percpu int local_percpu __attribute__((used)) = 3;
	extern int zeroed;
	{
		extern int announced;
		local += announced;
	}
	return local++ + zeroed + hidden + local_percpu;
}
//=0 [default,global_var] var static int local
//---
__attribute__((section(".data..percpu"))) int first = 1;
