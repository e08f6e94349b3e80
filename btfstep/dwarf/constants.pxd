# SPDX-License-Identifier: GPL-2.0-only
"""The DWARF constants that btfstep reads, by the standard's names (DWARF 5, section 7)."""

cdef enum:
    # Unit types, section 7.5.1
    DW_UT_compile = 0x01
    DW_UT_type = 0x02
    DW_UT_partial = 0x03
    DW_UT_skeleton = 0x04
    DW_UT_split_compile = 0x05
    DW_UT_split_type = 0x06

    # Tags, section 7.5.3
    DW_TAG_array_type = 0x01
    DW_TAG_class_type = 0x02
    DW_TAG_enumeration_type = 0x04
    DW_TAG_formal_parameter = 0x05
    DW_TAG_imported_declaration = 0x08
    DW_TAG_label = 0x0A
    DW_TAG_lexical_block = 0x0B
    DW_TAG_member = 0x0D
    DW_TAG_pointer_type = 0x0F
    DW_TAG_reference_type = 0x10
    DW_TAG_compile_unit = 0x11
    DW_TAG_string_type = 0x12
    DW_TAG_structure_type = 0x13
    DW_TAG_subroutine_type = 0x15
    DW_TAG_typedef = 0x16
    DW_TAG_union_type = 0x17
    DW_TAG_unspecified_parameters = 0x18
    DW_TAG_inlined_subroutine = 0x1D
    DW_TAG_ptr_to_member_type = 0x1F
    DW_TAG_subrange_type = 0x21
    DW_TAG_base_type = 0x24
    DW_TAG_const_type = 0x26
    DW_TAG_enumerator = 0x28
    DW_TAG_subprogram = 0x2E
    DW_TAG_variable = 0x34
    DW_TAG_volatile_type = 0x35
    DW_TAG_restrict_type = 0x37
    DW_TAG_interface_type = 0x38
    DW_TAG_namespace = 0x39
    DW_TAG_unspecified_type = 0x3B
    DW_TAG_partial_unit = 0x3C
    DW_TAG_imported_unit = 0x3D
    DW_TAG_type_unit = 0x41
    DW_TAG_rvalue_reference_type = 0x42
    DW_TAG_atomic_type = 0x47
    DW_TAG_skeleton_unit = 0x4A
    DW_TAG_LLVM_annotation = 0x6000
    DW_TAG_GNU_annotation = 0x6001

    # Attributes, section 7.5.4
    DW_AT_sibling = 0x01
    DW_AT_location = 0x02
    DW_AT_name = 0x03
    DW_AT_byte_size = 0x0B
    DW_AT_bit_offset = 0x0C
    DW_AT_bit_size = 0x0D
    DW_AT_low_pc = 0x11
    DW_AT_language = 0x13
    DW_AT_const_value = 0x1C
    DW_AT_inline = 0x20
    DW_AT_producer = 0x25
    DW_AT_upper_bound = 0x2F
    DW_AT_abstract_origin = 0x31
    DW_AT_artificial = 0x34
    DW_AT_calling_convention = 0x36
    DW_AT_count = 0x37
    DW_AT_data_member_location = 0x38
    DW_AT_declaration = 0x3C
    DW_AT_encoding = 0x3E
    DW_AT_external = 0x3F
    DW_AT_specification = 0x47
    DW_AT_type = 0x49
    DW_AT_signature = 0x69
    DW_AT_data_bit_offset = 0x6B
    DW_AT_str_offsets_base = 0x72
    DW_AT_addr_base = 0x73
    DW_AT_loclists_base = 0x8C
    DW_AT_dwo_name = 0x76
    DW_AT_GNU_dwo_name = 0x2130
    DW_AT_GNU_annotation = 0x2139

    # Forms, section 7.5.6
    DW_FORM_addr = 0x01
    DW_FORM_block2 = 0x03
    DW_FORM_block4 = 0x04
    DW_FORM_data2 = 0x05
    DW_FORM_data4 = 0x06
    DW_FORM_data8 = 0x07
    DW_FORM_string = 0x08
    DW_FORM_block = 0x09
    DW_FORM_block1 = 0x0A
    DW_FORM_data1 = 0x0B
    DW_FORM_flag = 0x0C
    DW_FORM_sdata = 0x0D
    DW_FORM_strp = 0x0E
    DW_FORM_udata = 0x0F
    DW_FORM_ref_addr = 0x10
    DW_FORM_ref1 = 0x11
    DW_FORM_ref2 = 0x12
    DW_FORM_ref4 = 0x13
    DW_FORM_ref8 = 0x14
    DW_FORM_ref_udata = 0x15
    DW_FORM_indirect = 0x16
    DW_FORM_sec_offset = 0x17
    DW_FORM_exprloc = 0x18
    DW_FORM_flag_present = 0x19
    DW_FORM_strx = 0x1A
    DW_FORM_addrx = 0x1B
    DW_FORM_ref_sup4 = 0x1C
    DW_FORM_strp_sup = 0x1D
    DW_FORM_data16 = 0x1E
    DW_FORM_line_strp = 0x1F
    DW_FORM_ref_sig8 = 0x20
    DW_FORM_implicit_const = 0x21
    DW_FORM_loclistx = 0x22
    DW_FORM_rnglistx = 0x23
    DW_FORM_ref_sup8 = 0x24
    DW_FORM_strx1 = 0x25
    DW_FORM_strx2 = 0x26
    DW_FORM_strx3 = 0x27
    DW_FORM_strx4 = 0x28
    DW_FORM_addrx1 = 0x29
    DW_FORM_addrx2 = 0x2A
    DW_FORM_addrx3 = 0x2B
    DW_FORM_addrx4 = 0x2C
    DW_FORM_GNU_addr_index = 0x1F01
    DW_FORM_GNU_str_index = 0x1F02
    DW_FORM_GNU_ref_alt = 0x1F20
    DW_FORM_GNU_strp_alt = 0x1F21

    # Base type encodings, section 7.8
    DW_ATE_boolean = 0x02
    DW_ATE_complex_float = 0x03
    DW_ATE_float = 0x04
    DW_ATE_signed = 0x05
    DW_ATE_signed_char = 0x06
    DW_ATE_imaginary_float = 0x09

    # Calling conventions, section 7.15
    DW_CC_nocall = 0x03

    # Languages, section 7.12
    DW_LANG_C89 = 0x01
    DW_LANG_C = 0x02
    DW_LANG_C_plus_plus = 0x04
    DW_LANG_C99 = 0x0C
    DW_LANG_Rust = 0x1C
    DW_LANG_C11 = 0x1D
    DW_LANG_C17 = 0x2C

    # Location expressions, section 7.7.1
    DW_OP_addr = 0x03
    DW_OP_const1u = 0x08
    DW_OP_constu = 0x10
    DW_OP_consts = 0x11
    DW_OP_plus_uconst = 0x23
    DW_OP_lit0 = 0x30
    DW_OP_lit31 = 0x4F
    DW_OP_reg0 = 0x50
    DW_OP_reg31 = 0x6F
    DW_OP_breg0 = 0x70
    DW_OP_breg31 = 0x8F
    DW_OP_regx = 0x90
    DW_OP_fbreg = 0x91
    DW_OP_bregx = 0x92
    DW_OP_piece = 0x93
    DW_OP_bit_piece = 0x9D
    DW_OP_implicit_value = 0x9E
    DW_OP_stack_value = 0x9F
    DW_OP_implicit_pointer = 0xA0
    DW_OP_addrx = 0xA1
    DW_OP_constx = 0xA2
    DW_OP_entry_value = 0xA3
    DW_OP_const_type = 0xA4
    DW_OP_regval_type = 0xA5
    DW_OP_deref_type = 0xA6
    DW_OP_xderef_type = 0xA7
    DW_OP_convert = 0xA8
    DW_OP_reinterpret = 0xA9
    DW_OP_GNU_implicit_pointer = 0xF2
    DW_OP_GNU_entry_value = 0xF3
    DW_OP_GNU_const_type = 0xF4
    DW_OP_GNU_regval_type = 0xF5
    DW_OP_GNU_deref_type = 0xF6
    DW_OP_GNU_convert = 0xF7
    DW_OP_GNU_reinterpret = 0xF9
    DW_OP_GNU_parameter_ref = 0xFA
    DW_OP_GNU_addr_index = 0xFB
    DW_OP_GNU_const_index = 0xFC
    DW_OP_GNU_variable_value = 0xFD

    # Location list entries, section 7.7.3
    DW_LLE_end_of_list = 0x00
    DW_LLE_base_addressx = 0x01
    DW_LLE_startx_endx = 0x02
    DW_LLE_startx_length = 0x03
    DW_LLE_offset_pair = 0x04
    DW_LLE_default_location = 0x05
    DW_LLE_base_address = 0x06
    DW_LLE_start_end = 0x07
    DW_LLE_start_length = 0x08
