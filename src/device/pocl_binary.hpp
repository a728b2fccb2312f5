#pragma once

#include <string>
#include <string_view>

#include <kiln/result.hpp>

namespace kiln {

/// Whether a program binary of PoCL is whole; Code::LoadRefused where it is not.
///
/// PoCL believes every length in a binary: one that was cut short ends the process by an assertion or a bad access
/// (3.1: at nearly every length), and a file name with `..` in it is written wherever it points. So what PoCL walks
/// through is walked through here first. A binary that is whole and yet damaged inside is for the store's checksums.
///
/// The form, little-endian, versions 9 to 12: "poclbin\0", u64 device, u32 version, u32 kernels, u64 flags, u32
/// folders, 41 bytes of a name, with flag 2 a u64; for each folder a u64 size and so many bytes of files; for each
/// kernel a u64 size of the whole record, which counts itself, a u64 size of the files at its end, and the rest. A file
/// is its name and its content, each a u32 length and so many bytes.
Status check_pocl_binary(std::string_view bytes);

/// A whole binary, to be unpacked into a folder of this name below PoCL's cache; at most 40 characters.
///
/// PoCL unpacks a binary into the folder that it was built in, and where its cache is switched off removes that folder
/// when the program is released, although others in this process or another may have loaded the same binary: threads
/// that do end by an abort. So each load gets a folder of its own there.
std::string with_pocl_folder(std::string_view whole, std::string_view name);

}  // namespace kiln
