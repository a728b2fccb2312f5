#include "session/config/protected_file.hpp"

#include "base/error.hpp"
#include "base/files/owned_file.hpp"

namespace kiln {
namespace {

constexpr std::uint64_t kMaxSize = 1 << 20;

}  // namespace

Result<std::optional<Bytes>> read_protected_file(const std::string& path) {
  const Result<OwnedFile> file = open_owned_file(path, FileUse::Obeyed);
  if (!file && file.error().code == Code::Unavailable) return std::optional<Bytes>();
  if (!file) return file.error();
  if (file->size > kMaxSize) return make_error(Code::Denied, "the file is larger than 1 MiB");
  Result<Bytes> text = read_all(file->fd.get(), file->size, path);
  if (!text) return std::move(text).error();
  return std::optional<Bytes>(std::move(*text));
}

}  // namespace kiln
