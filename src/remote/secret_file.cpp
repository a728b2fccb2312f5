#include "remote/secret_file.hpp"

#include <string_view>

#include "base/files.hpp"

namespace kiln {

Result<std::optional<std::string>> read_secret(const std::string& path) {
  const auto file = read_file(path);
  if (!file) return file.error();
  if (!*file) return std::optional<std::string>();
  const std::string_view text = (*file)->view();
  std::string_view line = text.substr(0, text.find('\n'));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return std::optional<std::string>(line);
}

}  // namespace kiln
