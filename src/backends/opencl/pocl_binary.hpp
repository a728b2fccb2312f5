// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <kiln/result.hpp>

namespace kiln {

/// Checks that a PoCL program binary is complete. Returns Code::LoadRejected if it is not.
///
/// PoCL trusts every length in a binary. A truncated one terminates the process by an assertion or a bad access (3.1:
/// at nearly every length), and a file name with `..` is written wherever it points. This function therefore checks the
/// structure first. The cache's checksums detect corruption inside a complete binary.
///
/// The format, little-endian, versions 9 to 12: "poclbin\0", u64 device, u32 version, u32 kernels, u64 flags, u32
/// directories, 41 bytes of a name, with flag 2 a u64; for each directory a u64 size and that many bytes of files; for
/// each kernel a u64 size of the whole record including itself, a u64 size of the files at its end, and the rest. A
/// file is its name and its content, each a u32 length and that many bytes.
Status check_pocl_binary(std::string_view bytes);

/// Returns a complete binary that PoCL unpacks into a directory of this name below its cache; at most 40 characters.
///
/// PoCL unpacks a binary into the directory in which it was built. If its cache is disabled, it removes that directory
/// when the program is released, although other users in this process or another may have loaded the same binary; their
/// threads then abort. Each load therefore gets its own directory.
std::string with_pocl_directory(std::string_view whole, std::string_view name);

}  // namespace kiln
