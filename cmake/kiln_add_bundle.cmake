# SPDX-License-Identifier: Apache-2.0
# Functions that build and embed bundles. docs/how-to/embed-bundles.md explains them. Call both in the directory that creates their
# target. They require CMake 3.16 or later and a system with ELF binaries.
if(POLICY CMP0116)
  cmake_policy(SET CMP0116 NEW)  # makes depfile paths independent of the calling directory
endif()

# kiln_add_bundle(<target> [<source>…] [MANIFEST <kiln.toml>]
#                 [ARCHS <arch>…] [ENTRIES <entry>…] [OPTIONS <option>…]
#                 [KEY <file>] [NAMESPACE <name>] [EPOCH <number>]
#                 [NAME <name>] [FILE] [DEPENDS <file>…])
#
# Compiles the units of a kiln.toml, or the given sources, for every architecture and links the resulting bundle into the
# target. With FILE, the bundle is copied next to the target instead. ENTRIES and OPTIONS apply to all given sources. The target
# can include the generated header <name>_units.hpp, which defines the same units. NAME defaults to the target's name. The
# property KILN_BUNDLE of the target is the path of the bundle in the build directory.
function(kiln_add_bundle target)
  cmake_parse_arguments(PARSE_ARGV 1 bundle "FILE" "MANIFEST;KEY;NAMESPACE;EPOCH;NAME" "ARCHS;ENTRIES;OPTIONS;DEPENDS")
  set(sources ${bundle_UNPARSED_ARGUMENTS})
  if(NOT TARGET ${target})
    message(FATAL_ERROR "kiln_add_bundle: target ${target} does not exist; create it first")
  elseif(bundle_MANIFEST AND (sources OR bundle_ENTRIES OR bundle_OPTIONS))
    message(FATAL_ERROR "kiln_add_bundle(${target}): MANIFEST cannot be combined with sources, ENTRIES or OPTIONS")
  elseif(NOT bundle_MANIFEST AND NOT (sources AND bundle_ARCHS))
    message(FATAL_ERROR "kiln_add_bundle(${target}): missing argument; pass MANIFEST, or sources and ARCHS")
  endif()
  if(NOT bundle_NAME)
    set(bundle_NAME ${target})
  endif()

  set(folder ${CMAKE_CURRENT_BINARY_DIR}/kiln)
  set(file ${folder}/${bundle_NAME}.kiln)
  set(header ${folder}/${bundle_NAME}_units.hpp)
  if(bundle_MANIFEST)
    get_filename_component(manifest ${bundle_MANIFEST} ABSOLUTE)
  else()
    set(manifest ${folder}/${bundle_NAME}.toml)
    kiln_write_manifest_(${manifest} "${sources}" "${bundle_ENTRIES}" "${bundle_OPTIONS}")
  endif()
  set(arguments)
  if(bundle_ARCHS)
    string(REPLACE ";" "," architectures "${bundle_ARCHS}")
    list(APPEND arguments --arch ${architectures})
  endif()
  if(bundle_KEY)
    get_filename_component(key ${bundle_KEY} ABSOLUTE)
    list(APPEND arguments --key ${key})
  endif()
  foreach(option NAMESPACE EPOCH)
    if(DEFINED bundle_${option})
      string(TOLOWER --${option} flag)
      list(APPEND arguments ${flag} ${bundle_${option}})
    endif()
  endforeach()
  # kiln writes a depfile of the sources and headers that it read. Only Ninja and newer CMake versions read it.
  set(depfile)
  if(CMAKE_GENERATOR MATCHES "Ninja|Makefiles" AND NOT CMAKE_VERSION VERSION_LESS 3.20)
    list(APPEND arguments --depfile ${file}.d)
    set(depfile DEPFILE ${file}.d)
  endif()
  # Uses a cache of this build, so that a second build compiles nothing and files of other programs have no influence.
  set(kiln ${CMAKE_COMMAND} -E env --unset=KILN_BUNDLES --unset=KILN_COMPILE --unset=KILN_RECORD
      KILN_CACHE_DIR=${CMAKE_BINARY_DIR}/kiln-cache $<TARGET_FILE:kiln::program>)
  add_custom_command(
    OUTPUT ${file}
    COMMAND ${kiln} bundle create ${manifest} -o ${file} ${arguments}
    DEPENDS ${manifest} ${sources} ${key} ${bundle_DEPENDS} kiln::program
    ${depfile}
    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
    COMMENT "Building the bundle ${bundle_NAME}.kiln"
    VERBATIM)
  add_custom_command(
    OUTPUT ${header}
    COMMAND ${kiln} bundle header ${manifest} -o ${header}
    DEPENDS ${file}
    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
    VERBATIM)
  target_sources(${target} PRIVATE ${header})
  target_include_directories(${target} PRIVATE ${folder})
  set_property(TARGET ${target} PROPERTY KILN_BUNDLE ${file})

  if(NOT bundle_FILE)
    kiln_embed_bundle(${target} ${file} NAME ${bundle_NAME})
    return()
  endif()
  # The copy is made after linking, so a new bundle requires a new link.
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${file})
  add_custom_command(TARGET ${target} POST_BUILD
    COMMAND ${CMAKE_COMMAND} -E copy_if_different ${file} $<TARGET_FILE_DIR:${target}>/${bundle_NAME}.kiln
    VERBATIM)
endfunction()

# kiln_embed_bundle(<target> <file> [NAME <name>])
#
# Links an existing bundle, or one that another build command creates, into the target.
function(kiln_embed_bundle target file)
  cmake_parse_arguments(PARSE_ARGV 2 bundle "" "NAME" "")
  if(WIN32 OR APPLE)
    message(FATAL_ERROR "kiln_embed_bundle(${target}): embedding requires a system with ELF binaries")
  endif()
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "INTERFACE_LIBRARY")
    message(FATAL_ERROR "kiln_embed_bundle(${target}): an interface library is not linked; pass a library or program that is")
  endif()
  get_filename_component(file ${file} ABSOLUTE)
  if(NOT bundle_NAME)
    get_filename_component(bundle_NAME ${file} NAME_WE)
  endif()
  # Two projects can each have a target with the same name.
  string(MD5 digest ${PROJECT_NAME}/${target}/${bundle_NAME})
  string(SUBSTRING ${digest} 0 8 digest)
  string(MAKE_C_IDENTIFIER kiln_bundle_${bundle_NAME}_${digest} symbol)

  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  set(extension c)
  if(CXX IN_LIST languages)
    set(extension cpp)
  endif()
  set(code ${CMAKE_CURRENT_BINARY_DIR}/kiln/${symbol}.${extension})
  kiln_write_note_(${code} ${file} ${symbol})
  # The compiler does not track the files that the assembler includes. LTO is off because the note would be missing from the LTO
  # objects.
  set_source_files_properties(${code} PROPERTIES
    GENERATED ON
    OBJECT_DEPENDS ${file}
    COMPILE_OPTIONS -fno-lto
    SKIP_PRECOMPILE_HEADERS ON
    SKIP_UNITY_BUILD_INCLUSION ON)
  target_sources(${target} PRIVATE ${code})
  if(type STREQUAL "STATIC_LIBRARY")
    # No code references this symbol, and linkers take only referenced objects from an archive.
    target_link_options(${target} INTERFACE LINKER:-u,${symbol})
  endif()
endfunction()

# Writes a kiln.toml for sources that share entries and options.
function(kiln_write_manifest_ manifest sources entries options)
  set(text "# Generated by kiln_add_bundle.\n")
  kiln_toml_list_(entries "${entries}")
  kiln_toml_list_(options "${options}")
  foreach(source ${sources})
    get_filename_component(source ${source} ABSOLUTE)
    kiln_toml_list_(source "${source}")
    string(APPEND text "\n[[unit]]\nsource = ${source}\nentries = [${entries}]\noptions = [${options}]\n")
  endforeach()
  kiln_write_if_different_(${manifest} "${text}")
endfunction()

# Returns the items as "one", "two": the content of a TOML array, or the string if there is one item.
function(kiln_toml_list_ variable items)
  set(text)
  foreach(item IN LISTS items)
    string(REPLACE "\\" "\\\\" item "${item}")
    string(REPLACE "\"" "\\\"" item "${item}")
    list(APPEND text "\"${item}\"")
  endforeach()
  string(REPLACE "\";\"" "\", \"" text "${text}")
  set(${variable} "${text}" PARENT_SCOPE)
endfunction()

# Writes the source file that puts the bundle and its note into an object. Every C and C++ compiler for ELF systems supports
# file-scope assembler, so projects need not enable another language. The note consists of 4-byte units. The assemblers of
# x86-64 and AArch64 both accept %note and %progbits.
function(kiln_write_note_ code file symbol)
  set(lines
    ".pushsection .rodata.kiln_bundle, \\\"a\\\", %progbits"
    ".balign 4096"
    ".hidden ${symbol}"
    ".globl ${symbol}"
    "${symbol}:"
    "1: .incbin \\\"${file}\\\""
    "2:"
    ".popsection"
    ".pushsection .note.kiln, \\\"a\\\", %note"
    ".balign 4"
    ".long 5, 16, 1"
    ".asciz \\\"kiln\\\""
    ".balign 4"
    "3: .quad 1b - 3b"
    ".quad 2b - 1b"
    ".popsection")
  set(text "/* Generated by kiln_embed_bundle: a bundle, and the note that locates it. */\n")
  string(APPEND text "typedef int kiln_not_empty;\n__asm__(\n")
  foreach(line IN LISTS lines)
    string(APPEND text "    \"${line}\\n\"\n")
  endforeach()
  string(APPEND text ");\n")
  kiln_write_if_different_(${code} "${text}")
endfunction()

function(kiln_write_if_different_ file text)
  set(before)
  if(EXISTS ${file})
    file(READ ${file} before)
  endif()
  if(NOT before STREQUAL text)
    file(WRITE ${file} "${text}")
  endif()
endfunction()
