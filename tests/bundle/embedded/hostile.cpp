// SPDX-License-Identifier: Apache-2.0
// A library with forged notes: wrong sizes, wrong locations, a future version, a different owner. The last one is
// valid.
#define NOTE(name, type, offset, size) \
  ".long 5, 16, " type                 \
  "\n"                                 \
  ".asciz \"" name                     \
  "\"\n"                               \
  ".balign 4\n"                        \
  "2: .quad " offset                   \
  "\n"                                 \
  ".quad " size "\n"

__asm__(
    ".pushsection .rodata.kiln_bundle, \"a\", %progbits\n"
    "1: .ascii \"the bundle of an honest note\"\n"
    ".popsection\n"
    ".pushsection .note.kiln, \"a\", %note\n"
    ".balign 4\n"                                                  //
    NOTE("kiln", "1", "1b - 2b", "1 << 40")                        //
    NOTE("kiln", "1", "1b - 2b", "-1")                             //
    NOTE("kiln", "1", "1b - 2b", "0")                              //
    NOTE("kiln", "1", "1 << 40", "28")                             //
    NOTE("kiln", "1", "-(1 << 40)", "28")                          //
    NOTE("kiln", "1", "0x7fffffffffffffff", "0x7fffffffffffffff")  //
    NOTE("kiln", "1", "-0x7fffffffffffffff", "28")                 //
    NOTE("kiln", "2", "1b - 2b", "28")                             //
    NOTE("kilm", "1", "1b - 2b", "28")                             //
    NOTE("kiln", "1", "1b - 2b", "28")                             //
    ".popsection\n");
