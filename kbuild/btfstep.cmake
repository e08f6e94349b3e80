# SPDX-License-Identifier: GPL-2.0-only
#
# BPF objects in a project that is built with CMake (3.20 or newer):
#
#   execute_process(COMMAND btfstep kbuild btfstep.cmake OUTPUT_VARIABLE rules OUTPUT_STRIP_TRAILING_WHITESPACE)
#   include(${rules})
#   btfstep_add_objects(programs KERNEL /path/to/vmlinux SOURCES prog.bpf.c ... [CFLAGS -I... ...] [SKELETONS])
#
# adds the target "programs", which is built by default. prog.bpf.c becomes ${programs_DIR}/prog.bpf.o, and with
# SKELETONS prog.skel.h beside it; ${programs_OBJECTS} and ${programs_SKELETONS} name them all. Sources say #include
# "vmlinux.h". An object is compiled again when its sources change, and when a kernel type does that it uses. Without
# KERNEL, it is the running kernel. USES_FLAGS are options of btfstep uses.
#
# The programs are BTFSTEP, BTFSTEP_CLANG and BTFSTEP_BPFTOOL; set them before, if they are not on the path. Builds by
# Ninja stop where the change stops; those by make do too, but look again each time at what did not change.

cmake_policy(VERSION 3.20)

find_program(BTFSTEP btfstep REQUIRED)
find_program(BTFSTEP_CLANG clang REQUIRED)
find_program(BTFSTEP_BPFTOOL bpftool PATHS /usr/sbin /sbin)

function(btfstep_add_objects target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "SKELETONS" "KERNEL" "SOURCES;CFLAGS;USES_FLAGS")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_SOURCES)
    message(FATAL_ERROR "btfstep_add_objects(TARGET [KERNEL FILE] SOURCES FILE... [CFLAGS FLAG...] [USES_FLAGS FLAG...] [SKELETONS])")
  endif()
  if(NOT arg_KERNEL)
    set(arg_KERNEL /sys/kernel/btf/vmlinux)
  endif()
  get_filename_component(kernel ${arg_KERNEL} ABSOLUTE)

  # The header has a directory of its own, which is searched as a system's: -MMD then leaves it out of what an object
  # was made from. What an object needs of it is in the object's .uses.
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${target}.dir)
  set(btf ${folder}/vmlinux.btf)
  set(header ${folder}/include/vmlinux.h)
  file(MAKE_DIRECTORY ${folder}/include)
  add_custom_command(
    OUTPUT ${btf}
    COMMAND ${BTFSTEP} dump ${kernel} --format btf -j -o ${btf}
    DEPENDS ${kernel}
    COMMENT "BTF of ${kernel}"
    VERBATIM
  )
  add_custom_command(
    OUTPUT ${header}
    COMMAND ${BTFSTEP} vmlinux-h ${btf} -o ${header}
    DEPENDS ${btf}
    COMMENT "vmlinux.h of ${kernel}"
    VERBATIM
  )

  set(objects)
  set(skeletons)
  foreach(source IN LISTS arg_SOURCES)
    get_filename_component(path ${source} ABSOLUTE)
    get_filename_component(name ${source} NAME_WLE)
    set(object ${folder}/${name}.o)
    # The digest of the types that the object uses: that of the object that is there, after the kernel changed.
    add_custom_command(
      OUTPUT ${object}.uses
      COMMAND ${BTFSTEP} uses ${object} --missing-ok --sources ${object}.sources
        --vmlinux ${btf} ${arg_USES_FLAGS} --stamp ${object}.uses
      DEPENDS ${btf} ${header}
      COMMENT "Types that ${name}.o uses"
      VERBATIM
    )
    # And that of the new one. The object gets its name last, so that there is none without a digest of its own. Ninja
    # removes the depfile, and what it says of the sources is needed later.
    add_custom_command(
      OUTPUT ${object}
      COMMAND
        ${BTFSTEP_CLANG} -target bpf -O2 -g ${arg_CFLAGS} -isystem ${folder}/include
        -MMD -MT ${object} -MF ${object}.d -c ${path} -o ${object}.tmp
      COMMAND ${CMAKE_COMMAND} -E copy ${object}.d ${object}.sources
      COMMAND ${BTFSTEP} uses ${object}.tmp --sources ${object}.sources
        --vmlinux ${btf} ${arg_USES_FLAGS} --stamp ${object}.uses
      COMMAND ${CMAKE_COMMAND} -E touch ${object}.tmp
      COMMAND ${CMAKE_COMMAND} -E rename ${object}.tmp ${object}
      DEPENDS ${path} ${object}.uses
      DEPFILE ${object}.d
      COMMENT "BPF object ${name}.o"
      VERBATIM
    )
    list(APPEND objects ${object})
    if(arg_SKELETONS)
      string(REGEX REPLACE "(\\.bpf)?\\.o$" ".skel.h" skeleton ${object})
      add_custom_command(
        OUTPUT ${skeleton}
        COMMAND sh -c [["$1" gen skeleton "$2" > "$3.tmp" && mv -f "$3.tmp" "$3"]]
          sh ${BTFSTEP_BPFTOOL} ${object} ${skeleton}
        DEPENDS ${object}
        COMMENT "Skeleton of ${name}.o"
        VERBATIM
      )
      list(APPEND skeletons ${skeleton})
    endif()
  endforeach()

  add_custom_target(${target} ALL DEPENDS ${objects} ${skeletons})
  set(${target}_DIR ${folder} PARENT_SCOPE)
  set(${target}_OBJECTS ${objects} PARENT_SCOPE)
  set(${target}_SKELETONS ${skeletons} PARENT_SCOPE)
endfunction()
