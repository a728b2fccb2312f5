#pragma once

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <random>
#include <string>
#include <vector>

#include "base/files.hpp"

namespace kiln::test {

/// One of the damages that a file can take, to a random one of these, in place and without regard to readers: a bit is
/// flipped, its end is cut off, it is emptied, removed, or changes places with another. What is gone by now is left.
inline void damage_one(const std::vector<std::string>& files, std::mt19937& random) {
  if (files.empty()) return;
  const std::string& path = files[random() % files.size()];
  struct stat status;
  if (stat(path.c_str(), &status) != 0 || status.st_size == 0) return;
  const auto at = static_cast<off_t>(random() % static_cast<unsigned long>(status.st_size));
  switch (random() % 5) {
    case 0: {
      const Fd file(open(path.c_str(), O_RDWR | O_CLOEXEC));
      unsigned char byte = 0;
      if (!file || pread(file.get(), &byte, 1, at) != 1) return;
      byte = static_cast<unsigned char>(byte ^ (1u << random() % 8));
      if (pwrite(file.get(), &byte, 1, at) != 1) return;
      break;
    }
    case 1:
      if (truncate(path.c_str(), at) != 0) return;
      break;
    case 2:
      if (truncate(path.c_str(), 0) != 0) return;
      break;
    case 3: unlink(path.c_str()); break;
    default: renameat2(AT_FDCWD, path.c_str(), AT_FDCWD, files[random() % files.size()].c_str(), RENAME_EXCHANGE);
  }
}

}  // namespace kiln::test
