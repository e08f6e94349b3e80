# SPDX-License-Identifier: GPL-2.0-only
#
# BPF programs in a project that is built with GNU make (3.82 or newer):
#
#   BTFSTEP_KERNEL  := path/to/vmlinux
#   BTFSTEP_SOURCES := prog.bpf.c ...
#   include $(shell btfstep kbuild)/btfstep.mk
#
#   all: $(BTFSTEP_OBJECTS) $(BTFSTEP_SKELETONS)
#   clean: btfstep-clean
#
# src/prog.bpf.c becomes $(BTFSTEP_OUTPUT)/src/prog.bpf.o, and prog.skel.h beside it if there is a bpftool. Sources
# say #include "vmlinux.h". An object is compiled again when its sources change, and when a kernel type does that it uses.
#
# What may be set before the include, or on the command line:
#
#   BTFSTEP_KERNEL        vmlinux with BTF or DWARF, or raw BTF; a rule of yours may make it (default: the running kernel)
#   BTFSTEP_SOURCES       the sources of BPF objects
#   BTFSTEP_OUTPUT        the directory for what is made (default: build)
#   BTFSTEP_CFLAGS        added to -target bpf -O2 -g
#   BTFSTEP_HEADER_FLAGS  options of btfstep vmlinux-h, such as --only
#   BTFSTEP_USES_FLAGS    options of btfstep uses, such as --type for what leaves no trace in an object
#   BTFSTEP, BTFSTEP_CLANG, BTFSTEP_BPFTOOL   programs; BTFSTEP_BPFTOOL= makes no skeletons
#   V=1                   show commands
#
# How a build stops where the change stops: in make, a rule has run if its target is newer than what it is made from, and
# btfstep leaves an output alone that would not change. So each such output has a file NAME.checked, which says when it
# was last looked at, and a rule with an empty recipe, after which make looks at the output's own time.

btfstep-goal := $(.DEFAULT_GOAL)

BTFSTEP ?= btfstep
BTFSTEP_CLANG ?= clang
BTFSTEP_KERNEL ?= /sys/kernel/btf/vmlinux
BTFSTEP_OUTPUT ?= build
ifeq ($(origin BTFSTEP_BPFTOOL),undefined)
BTFSTEP_BPFTOOL := $(shell PATH="$$PATH:/usr/sbin:/sbin"; command -v bpftool 2>/dev/null)
endif

# The header has a directory of its own, which is searched as a system's: -MMD then leaves it out of what an object was
# made from. What an object needs of it is in the object's .uses.
BTFSTEP_BTF := $(BTFSTEP_OUTPUT)/vmlinux.btf
BTFSTEP_HEADER := $(BTFSTEP_OUTPUT)/include/vmlinux.h
BTFSTEP_OBJECTS := $(patsubst %.c,$(BTFSTEP_OUTPUT)/%.o,$(BTFSTEP_SOURCES))
BTFSTEP_SKELETONS := $(if $(BTFSTEP_BPFTOOL),$(patsubst %.bpf.o,%.skel.h,$(filter %.bpf.o,$(BTFSTEP_OBJECTS))))

ifeq ($(V),1)
btfstep-say = @:
btfstep-quiet :=
else
btfstep-say = @$(if $(findstring s,$(firstword -$(MAKEFLAGS))),:,printf '  %-8s %s\n' $(1) $(2))
btfstep-quiet := @
endif

# $(call btfstep-force-unless,FILE,SETTING): a prerequisite that has FILE made anew if it is gone, or was made with another
# setting, which is what FILE.checked holds: another kernel may be older than all that was made of this one.
btfstep-differ = $(subst x$(1)x,,x$(2)x)$(subst x$(2)x,,x$(1)x)
btfstep-force-unless = $(if $(wildcard $(1)),$(if $(call btfstep-differ,$(strip $(2)),$(strip \
	$(shell cat $(1).checked 2>/dev/null))),btfstep-force),btfstep-force)
btfstep-echo = printf '%s\n' '$(subst ','\'',$(strip $(1)))'

$(BTFSTEP_BTF).checked: $(BTFSTEP_KERNEL) $(call btfstep-force-unless,$(BTFSTEP_BTF),$(BTFSTEP_KERNEL))
	$(call btfstep-say,BTF,$(BTFSTEP_BTF))
	$(btfstep-quiet)mkdir -p $(@D)
	$(btfstep-quiet)$(BTFSTEP) dump $(BTFSTEP_KERNEL) --format btf -j -o $(BTFSTEP_BTF)
	$(btfstep-quiet)$(call btfstep-echo,$(BTFSTEP_KERNEL)) >$@

$(BTFSTEP_BTF): $(BTFSTEP_BTF).checked ;

$(BTFSTEP_HEADER).checked: $(BTFSTEP_BTF) $(call btfstep-force-unless,$(BTFSTEP_HEADER),$(BTFSTEP_HEADER_FLAGS))
	$(call btfstep-say,HEADER,$(BTFSTEP_HEADER))
	$(btfstep-quiet)mkdir -p $(@D)
	$(btfstep-quiet)$(BTFSTEP) vmlinux-h $(BTFSTEP_BTF) $(BTFSTEP_HEADER_FLAGS) -o $(BTFSTEP_HEADER)
	$(btfstep-quiet)$(call btfstep-echo,$(BTFSTEP_HEADER_FLAGS)) >$@

$(BTFSTEP_HEADER): $(BTFSTEP_HEADER).checked ;

# $(call btfstep-object,OBJECT,SOURCE): OBJECT.uses is a digest of the types that OBJECT uses. It is written by the
# compilation, for the new object, and by the check of the old one after the kernel changed; if it is newer than the
# object, a type changed. The object gets its name last, so that there is none without a digest of its own.
define btfstep-object
$(1).checked: $(BTFSTEP_BTF)
	$$(btfstep-quiet)mkdir -p $$(@D)
	$$(btfstep-quiet)$$(BTFSTEP) uses $(1) --missing-ok --sources $(1).d --vmlinux $(BTFSTEP_BTF) $$(BTFSTEP_USES_FLAGS) \
		--stamp $(1).uses
	$$(btfstep-quiet)touch $$@

$(1).uses: $(1).checked ;

$(1): $(2) $(1).uses | $(BTFSTEP_HEADER)
	$$(call btfstep-say,BPF,$(1))
	$$(btfstep-quiet)mkdir -p $$(@D)
	$$(btfstep-quiet)$$(BTFSTEP_CLANG) -target bpf -O2 -g $$(BTFSTEP_CFLAGS) -isystem $(dir $(BTFSTEP_HEADER)) \
		-MMD -MP -MF $(1).d -MT $(1) -c $(2) -o $(1).tmp
	$$(btfstep-quiet)$$(BTFSTEP) uses $(1).tmp --sources $(1).d --vmlinux $(BTFSTEP_BTF) $$(BTFSTEP_USES_FLAGS) \
		--stamp $(1).uses
	$$(btfstep-quiet)touch $(1).tmp
	$$(btfstep-quiet)mv -f $(1).tmp $(1)

$(1).d: ;
-include $(1).d
endef

$(foreach source,$(BTFSTEP_SOURCES),$(eval $(call btfstep-object,$(source:%.c=$(BTFSTEP_OUTPUT)/%.o),$(source))))

ifneq ($(BTFSTEP_SKELETONS),)
$(BTFSTEP_SKELETONS): %.skel.h: %.bpf.o
	$(call btfstep-say,SKEL,$@)
	$(btfstep-quiet)$(BTFSTEP_BPFTOOL) gen skeleton $< >$@.tmp
	$(btfstep-quiet)mv -f $@.tmp $@
endif

.PHONY: btfstep-clean btfstep-force
btfstep-clean:
	$(call btfstep-say,CLEAN,$(BTFSTEP_OUTPUT))
	$(btfstep-quiet)rm -f $(foreach name,$(BTFSTEP_BTF) $(BTFSTEP_HEADER),$(name) $(name).checked) $(BTFSTEP_SKELETONS) \
		$(foreach name,$(BTFSTEP_OBJECTS),$(name) $(name).checked $(name).d $(name).tmp $(name).uses)

.DEFAULT_GOAL := $(btfstep-goal)
