# Bundles as parts of a build. docs/embedding-bundles.md says what these are for; both are to be called in the folder in
# which their target was made. They work with CMake 3.16 and later, and on systems whose programs are ELF files.
if(POLICY CMP0116)
  cmake_policy(SET CMP0116 NEW)  # what a depfile names is found in whichever folder the function is called
endif()

# kiln_add_bundle(<target> [<source>…] [MANIFEST <kiln.toml>]
#                 [ARCHS <arch>…] [ENTRIES <entry>…] [OPTIONS <option>…]
#                 [KEY <file>] [NAMESPACE <name>] [EPOCH <number>]
#                 [NAME <name>] [FILE] [DEPENDS <file>…])
#
# Compiles the units of a kiln.toml, or the given sources, for every architecture, and links the bundle of them into the
# target; with FILE it is put beside the target instead. ENTRIES and OPTIONS are for the sources: all have the same.
# The target finds a header <name>_units.hpp, by which it makes the same units; NAME is the target's unless it is given.
# Its property KILN_BUNDLE is the bundle's path in the build folder.
function(kiln_add_bundle target)
  cmake_parse_arguments(PARSE_ARGV 1 bundle "FILE" "MANIFEST;KEY;NAMESPACE;EPOCH;NAME" "ARCHS;ENTRIES;OPTIONS;DEPENDS")
  set(sources ${bundle_UNPARSED_ARGUMENTS})
  if(NOT TARGET ${target})
    message(FATAL_ERROR "kiln_add_bundle: there is no target ${target}; make it first")
  elseif(bundle_MANIFEST AND (sources OR bundle_ENTRIES OR bundle_OPTIONS))
    message(FATAL_ERROR "kiln_add_bundle(${target}): a kiln.toml names its own sources, entries and options")
  elseif(NOT bundle_MANIFEST AND NOT (sources AND bundle_ARCHS))
    message(FATAL_ERROR "kiln_add_bundle(${target}): give it MANIFEST, or sources and ARCHS")
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
  # kiln knows which sources and headers it has read; only Ninja and later CMakes listen.
  set(depfile)
  if(CMAKE_GENERATOR MATCHES "Ninja|Makefiles" AND NOT CMAKE_VERSION VERSION_LESS 3.20)
    list(APPEND arguments --depfile ${file}.d)
    set(depfile DEPFILE ${file}.d)
  endif()
  # A cache of the build's own: a second build compiles nothing, and what other programs left does not matter.
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
    COMMAND ${kiln} bundle units ${manifest} -o ${header}
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
  # The copy is made after linking, and so a new bundle asks for a new link.
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${file})
  add_custom_command(TARGET ${target} POST_BUILD
    COMMAND ${CMAKE_COMMAND} -E copy_if_different ${file} $<TARGET_FILE_DIR:${target}>/${bundle_NAME}.kiln
    VERBATIM)
endfunction()

# kiln_embed_bundle(<target> <file> [NAME <name>])
#
# Links a bundle that is there, or that another command of the build makes, into the target.
function(kiln_embed_bundle target file)
  cmake_parse_arguments(PARSE_ARGV 2 bundle "" "NAME" "")
  if(WIN32 OR APPLE)
    message(FATAL_ERROR "kiln_embed_bundle(${target}): only ELF files have the notes by which bundles are found")
  endif()
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "INTERFACE_LIBRARY")
    message(FATAL_ERROR "kiln_embed_bundle(${target}): nothing is linked here; name the library or program that is")
  endif()
  get_filename_component(file ${file} ABSOLUTE)
  if(NOT bundle_NAME)
    get_filename_component(bundle_NAME ${file} NAME_WE)
  endif()
  # Two projects may each have a target of one name.
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
  # The compiler does not see what the assembler includes. It makes an object even where others are left for the linker
  # to compile, because the note is in none of those.
  set_source_files_properties(${code} PROPERTIES
    GENERATED ON
    OBJECT_DEPENDS ${file}
    COMPILE_OPTIONS -fno-lto
    SKIP_PRECOMPILE_HEADERS ON
    SKIP_UNITY_BUILD_INCLUSION ON)
  target_sources(${target} PRIVATE ${code})
  if(type STREQUAL "STATIC_LIBRARY")
    # Nobody refers to what is in it, and linkers take from an archive what somebody refers to.
    target_link_options(${target} INTERFACE LINKER:-u,${symbol})
  endif()
endfunction()

# A kiln.toml of sources that have the same entries and options.
function(kiln_write_manifest_ manifest sources entries options)
  set(text "# Made by kiln_add_bundle.\n")
  kiln_toml_list_(entries "${entries}")
  kiln_toml_list_(options "${options}")
  foreach(source ${sources})
    get_filename_component(source ${source} ABSOLUTE)
    kiln_toml_list_(source "${source}")
    string(APPEND text "\n[[unit]]\nsource = ${source}\nentries = [${entries}]\noptions = [${options}]\n")
  endforeach()
  kiln_write_if_different_(${manifest} "${text}")
endfunction()

# "one", "two": what goes between the brackets of a TOML array, and for one item its string.
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

# The source that puts the bundle and its note into an object. File-scope assembler is in every C and C++ compiler for
# ELF systems, and so no project has to enable another language. The note is in 4-byte units; %note and %progbits are
# spelt as the assemblers of x86-64 and of AArch64 both take them.
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
  set(text "/* Made by kiln_embed_bundle: a bundle, and the note that says where it is. */\n")
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
