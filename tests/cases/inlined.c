// SPDX-License-Identifier: GPL-2.0-only
// A function that is inlined in some units, and code in others.

struct s { int a; };
static inline int helper(struct s *s) { return s->a * 3; }
static inline int disputed(struct s *s) { return s->a * 5; }
int a(struct s *s) { return helper(s) + disputed(s); }
//---
struct s { int a; };
static __attribute__((noinline, used)) int helper(struct s *s) { return s->a * 3; }
static __attribute__((noinline, used)) int disputed(struct s *s) { return s->a * 5; }
int b(struct s *s) { return helper(s) + disputed(s); }
//---
struct s { int a; };
static inline int disputed(struct s *s, int more) { return s->a * 5 + more; }
int c(struct s *s) { return disputed(s, 1); }

//=1 func int helper(struct s * s)
//=0 func int disputed(
//=1 func int c(struct s * s)
