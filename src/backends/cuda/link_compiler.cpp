// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/link_compiler.hpp"

#include <set>

#include "base/codec.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"

namespace kiln {
namespace {

Target lto_target(const Target& target) { return {target.architecture, Form::LtoIr}; }

}  // namespace

// The parts of a link, all as bytes.
struct LinkCompiler::LinkInputs {
  std::vector<LinkPart> parts;
  std::vector<EntryPoint> entries;  // of the parts that were units
  DependencySet dependency_set;
  std::string not_cacheable;
};

void add_dependency_set(DependencySet& whole, const DependencySet& part, const PartRoots& roots) {
  const auto moved = [&](std::uint16_t root) {
    const bool is_place = root == DependencySet::kWorkingDirectory || root == DependencySet::kAbsolute;
    if (is_place) return root;
    return static_cast<std::uint16_t>(root < roots.count ? root + roots.first : root - roots.count + roots.compiler);
  };
  const auto first_item = static_cast<std::uint32_t>(whole.items.size());
  for (DependencySet::Dependency item : part.items) {
    item.root = moved(item.root);
    whole.items.push_back(std::move(item));
  }
  for (const DependencySet::DuplicateFiles& pair : part.duplicate_files) {
    whole.duplicate_files.push_back({pair.first + first_item, pair.second + first_item, pair.same_file});
  }
  for (const DependencySet::NestedRoot& nesting : part.nested_roots) {
    whole.nested_roots.push_back({moved(nesting.outer), moved(nesting.inner), nesting.subpath});
  }
  whole.embeds_paths = whole.embeds_paths || part.embeds_paths;
  whole.embeds_mtimes = whole.embeds_mtimes || part.embeds_mtimes;
}

LinkCompiler::LinkCompiler(std::unique_ptr<Compiler> inner, Compiler& parts, Get get, FileDigestCache& digests)
    : inner_(std::move(inner)), parts_(parts), get_(std::move(get)), failures_(digests) {}

Result<CompilerIdentity> LinkCompiler::identity(const RequestContext& context) {
  Result<CompilerIdentity> linker = inner_->identity(context);
  if (!linker) return linker;
  const Result<CompilerIdentity> compiler = parts_.identity(context);
  if (!compiler) return linker;
  CompilerIdentity both = *linker;
  both.name += "+" + compiler->name;
  both.version += " with " + compiler->name + " " + compiler->version;
  BinaryWriter out;
  out.text("kiln parts 1").digest(linker->digest).digest(compiler->digest);
  both.digest = sha256(out.bytes());
  both.add_environment(compiler->environment);
  both.roots = compiler->roots;
  return both;
}

bool LinkCompiler::is_self_contained(const Recipe& recipe) const {
  const auto parts = decode_link_parts(recipe.unit);
  if (!parts) return false;
  bool has_units = false;
  for (const LinkPartView& part : *parts) {
    if (!part.unit) continue;
    has_units = true;
    // The environment of both compilers includes that of one, so this check is conservative.
    const Recipe alone{*part.unit, lto_target(recipe.target), recipe.compiler, recipe.working_directory};
    if (part.unit->kind() != parts_.kind() || !parts_.is_self_contained(alone)) return false;
  }
  // The linker's result for a link of bytes also applies here once the units are bytes.
  if (!has_units) return inner_->is_self_contained(recipe);
  Recipe bare = recipe;
  bare.unit = Unit::link(recipe.unit.name(), {LinkPart::ltoir({}, {})}).with_options(recipe.unit.options());
  return inner_->is_self_contained(bare);
}

Status LinkCompiler::collect_inputs(const Recipe& recipe, const std::vector<LinkPartView>& parts, LinkInputs& all,
                                    const RequestContext& context) {
  std::size_t first_root = 0;
  for (const LinkPartView& part : parts) {
    if (!part.unit) {
      const Bytes bytes = Bytes::copy_of(part.bytes);
      const std::string name(part.name);
      all.parts.push_back(part.form == Form::Cubin ? LinkPart::cubin(name, bytes)
                          : part.form == Form::Ptx ? LinkPart::ptx(name, bytes)
                                                   : LinkPart::ltoir(name, bytes));
      continue;
    }
    const Unit& unit = *part.unit;
    const std::string whose = "the part '" + unit.name() + "' of unit '" + recipe.unit.name() + "': ";
    if (unit.kind() != parts_.kind()) {
      return make_error(Code::InvalidArgument, whose + "a unit of kind " + unit.kind() + " cannot be a part");
    }
    auto identity = parts_.identity(context);
    if (!identity) return std::move(identity).error();
    // The sources that can serve the link can serve its parts, and no others.
    Recipe own{unit.with_served_by(recipe.unit.served_by()), lto_target(recipe.target), std::move(*identity),
               recipe.working_directory};
    own.self_contained = parts_.is_self_contained(own);
    auto got = get_(own, context);
    if (!got) {
      if (got.error().code == Code::CompileFailed) {
        failures_.add(recipe, [this, own = std::move(own)](const Recipe&) { return parts_.should_retry(own); });
      }
      return make_error(got.error().code, whose + got.error().message, got.error().log);
    }
    Artifact& artifact = got->artifact;
    if (got->uncacheable_reason.empty() && artifact.dependency_set == nullptr)
      got->uncacheable_reason = "its inputs were not recorded";
    if (!got->uncacheable_reason.empty()) all.not_cacheable = whose + got->uncacheable_reason;
    if (artifact.dependency_set != nullptr)
      add_dependency_set(all.dependency_set, *artifact.dependency_set,
                         {first_root, unit.include_roots().size(), recipe.unit.include_roots().size()});
    first_root += unit.include_roots().size();
    all.entries.insert(all.entries.end(), artifact.entries.begin(), artifact.entries.end());
    all.parts.push_back(LinkPart::ltoir(unit.name(), std::move(artifact.bytes)));
  }
  return {};
}

Result<CompileResult> LinkCompiler::link(const Recipe& recipe, LinkInputs& all, const RequestContext& context) {
  auto identity = inner_->identity(context);
  if (!identity) return std::move(identity).error();
  Unit bytes = Unit::link(recipe.unit.name(), all.parts).with_options(recipe.unit.options());
  for (const std::string& name : recipe.unit.entries()) {
    std::set<std::string> symbols;
    for (const EntryPoint& entry : all.entries) {
      if (entry.name == name) symbols.insert(entry.symbol);
    }
    if (symbols.size() > 1) {
      return make_error(Code::CompileFailed,
                        "unit '" + recipe.unit.name() + "' has more than one kernel '" + name +
                            "': " + *symbols.begin() + " and " + *symbols.rbegin(),
                        "the parts of the unit have different symbols for one entry");
    }
    bytes = bytes.with_entry(symbols.empty() ? name : *symbols.begin());
  }
  Recipe linkable{std::move(bytes), recipe.target, std::move(*identity), recipe.working_directory};
  linkable.self_contained = inner_->is_self_contained(linkable);
  auto compiled = inner_->compile(linkable, context);
  if (!compiled) return compiled;
  std::vector<EntryPoint>& entries = compiled->artifact.entries;
  for (std::size_t i = 0; i < entries.size() && i < recipe.unit.entries().size(); ++i) {
    entries[i].name = recipe.unit.entries()[i];
  }
  return compiled;
}

Result<CompileResult> LinkCompiler::compile(const Recipe& recipe, const RequestContext& context) {
  const auto parts = decode_link_parts(recipe.unit);
  if (!parts) return parts.error();
  if (recipe.unit.include_roots().size() >= DependencySet::kWorkingDirectory) {
    return make_error(Code::InvalidArgument, "unit '" + recipe.unit.name() + "' has too many include roots");
  }
  if (Status supported = supports(recipe.target); !supported) return std::move(supported).error();
  LinkInputs all;
  if (Status got = collect_inputs(recipe, *parts, all, context); !got) return std::move(got).error();
  if (all.dependency_set.embeds_paths) {
    all.dependency_set.working_directory = recipe.working_directory;
    for (const IncludeRoot& root : recipe.unit.include_roots()) all.dependency_set.root_paths.push_back(root.path);
    const auto is_compilers = [&](const DependencySet::Dependency& item) {
      return item.root >= recipe.unit.include_roots().size() && item.root < DependencySet::kWorkingDirectory;
    };
    const std::vector<DependencySet::Dependency>& items = all.dependency_set.items;
    if (std::any_of(items.begin(), items.end(), is_compilers)) {
      for (const IncludeRoot& root : recipe.compiler.roots) all.dependency_set.root_paths.push_back(root.path);
    }
  }
  // Parts with times in their dependency sets have line information, and the linker reads the times of those files
  // again.
  if (all.dependency_set.embeds_mtimes && all.not_cacheable.empty())
    all.not_cacheable = "one of its parts contains times of files";

  auto compiled = link(recipe, all, context);
  if (!compiled) {
    const bool lasting = compiled.error().code == Code::CompileFailed && all.not_cacheable.empty();
    if (lasting) failures_.add(recipe, std::move(all.dependency_set));
    return compiled;
  }
  compiled->artifact.dependency_set = std::make_shared<const DependencySet>(std::move(all.dependency_set));
  if (compiled->uncacheable_reason.empty()) compiled->uncacheable_reason = std::move(all.not_cacheable);
  const auto now = identity({});
  if (!now || now->digest != recipe.compiler.digest || now->environment != recipe.compiler.environment) {
    compiled->uncacheable_reason = "the linker or the compiler of its parts changed while it ran";
  }
  return compiled;
}

bool LinkCompiler::should_retry(const Recipe& recipe) {
  return !is_self_contained(recipe) && failures_.worth_another_try(recipe);
}

}  // namespace kiln
