// SPDX-License-Identifier: Apache-2.0
#include "backends/cccl/output_capture.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>

namespace kiln {
namespace {

constexpr std::size_t kMaxTextLength = std::size_t{1} << 20;
constexpr int kStreams[] = {STDOUT_FILENO, STDERR_FILENO};

}  // namespace

OutputCapture::OutputCapture() : file_(memfd_create("kiln-output", MFD_CLOEXEC)) {
  if (!file_) return;
  (void)fcntl(file_.get(), F_SETFL, O_APPEND);
  (void)std::fflush(nullptr);
  for (std::size_t i = 0; i < 2; ++i) {
    saved_[i] = Fd(fcntl(kStreams[i], F_DUPFD_CLOEXEC, 3));
    (void)dup2(file_.get(), kStreams[i]);
  }
}

OutputCapture::~OutputCapture() {
  (void)std::fflush(nullptr);
  for (std::size_t i = 0; i < 2; ++i) {
    if (saved_[i]) (void)dup2(saved_[i].get(), kStreams[i]);
  }
}

std::string OutputCapture::text() const {
  (void)std::fflush(nullptr);
  std::string text(kMaxTextLength, '\0');
  const ssize_t got = file_ ? pread(file_.get(), text.data(), text.size(), 0) : 0;
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

}  // namespace kiln
