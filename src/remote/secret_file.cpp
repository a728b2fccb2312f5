// SPDX-License-Identifier: Apache-2.0
#include "remote/secret_file.hpp"

#include <algorithm>

#include "base/files/owned_file.hpp"

namespace kiln {
namespace {

constexpr std::uint64_t kMaxLine = std::uint64_t{64} << 10;

}  // namespace

Result<std::optional<std::string>> read_secret(const std::string& path) {
  const Result<OwnedFile> file = open_owned_file(path, FileUse::Secret);
  if (!file && file.error().code == Code::Unavailable) return std::optional<std::string>();
  if (!file) return file.error();
  const Result<Bytes> bytes = read_all(file->fd.get(), std::min(file->size, kMaxLine), path);
  if (!bytes) return bytes.error();
  const std::string_view text = bytes->view();
  std::string_view line = text.substr(0, text.find('\n'));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return std::optional<std::string>(line);
}

bool is_this_machine(std::string_view host) {
  // A host name may start with "127" too.
  const bool is_number = host.find_first_not_of("0123456789.") == std::string_view::npos;
  return host == "localhost" || host == "::1" || (is_number && host.starts_with("127."));
}

}  // namespace kiln
