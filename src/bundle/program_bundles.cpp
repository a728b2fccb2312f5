// SPDX-License-Identifier: Apache-2.0
#include "bundle/program_bundles.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "bundle/bundle.hpp"

namespace kiln {
namespace {

// One bundle of a list without a lock, whose nodes are never freed. A child can use the list even if it was forked
// while another thread added a bundle.
struct Node {
  std::string path;
  const Node* previous = nullptr;
  std::size_t count = 1;  // length of the list that ends with this node
};
std::atomic<const Node*> last_node = nullptr;

bool has_path(const Node* node, const std::string& path) {
  while (node != nullptr && node->path != path) node = node->previous;
  return node != nullptr;
}

}  // namespace

Result<std::unique_ptr<BundleSource>> open_program_bundle(const std::string& path) {
  // Not the rule for caches: another user may have installed the program, and its group may be allowed to update it.
  struct stat status;
  if (stat(path.c_str(), &status) == 0 && (status.st_mode & S_IWOTH) != 0) {
    return make_error(Code::Denied,
                      "cannot use the bundle " + path + ": every user can write to it; run chmod o-w on it");
  }
  return open_bundle_source(path);
}

Status use_bundle(const std::string& path) {
  std::error_code failed;
  auto node = std::make_unique<Node>();
  node->path = std::filesystem::absolute(path, failed).lexically_normal().string();
  if (failed) return make_error(Code::Io, "cannot use the bundle " + path + ": " + failed.message());
  const Node* last = last_node.load(std::memory_order_acquire);
  if (has_path(last, node->path)) return {};
  auto source = open_program_bundle(node->path);
  if (!source) return std::move(source).error();
  if (auto bundle = Bundle::open(std::move(*source), nullptr); !bundle) return std::move(bundle).error();
  do {
    if (has_path(last, node->path)) return {};
    node->previous = last;
    node->count = last != nullptr ? last->count + 1 : 1;
  } while (!last_node.compare_exchange_weak(last, node.get(), std::memory_order_acq_rel, std::memory_order_acquire));
  (void)node.release();
  return {};
}

std::size_t program_bundle_count() {
  const Node* const last = last_node.load(std::memory_order_acquire);
  return last != nullptr ? last->count : 0;
}

std::vector<std::string> program_bundles() {
  std::vector<std::string> paths;
  for (const Node* node = last_node.load(std::memory_order_acquire); node != nullptr; node = node->previous) {
    paths.push_back(node->path);
  }
  std::reverse(paths.begin(), paths.end());
  return paths;
}

}  // namespace kiln
