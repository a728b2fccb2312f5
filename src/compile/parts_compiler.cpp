#include "compile/parts_compiler.hpp"

#include <set>

#include "base/codec.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"

namespace kiln {
namespace {

Target lto_target(const Target& target) { return {target.architecture, Form::LtoIr}; }

}  // namespace

// The parts of a link, all of them as bytes.
struct PartsCompiler::Gathered {
  std::vector<LinkPart> parts;
  std::vector<Entry> entries;  // of the parts that were units
  Closure closure;
  std::string not_cacheable;
};

void add_closure(Closure& whole, const Closure& part, std::size_t first_root) {
  const auto moved = [&](std::uint16_t root) {
    const bool is_place = root == Closure::kWorkingDirectory || root == Closure::kAbsolute;
    return is_place ? root : static_cast<std::uint16_t>(root + first_root);
  };
  const auto first_item = static_cast<std::uint32_t>(whole.items.size());
  for (Closure::Item item : part.items) {
    item.root = moved(item.root);
    whole.items.push_back(std::move(item));
  }
  for (const Closure::Twins& pair : part.twins) {
    whole.twins.push_back({pair.first + first_item, pair.second + first_item, pair.one_file});
  }
  for (const Closure::Nesting& nesting : part.nestings) {
    whole.nestings.push_back({moved(nesting.outer), moved(nesting.inner), nesting.below});
  }
  whole.located = whole.located || part.located;
  whole.timed = whole.timed || part.timed;
}

PartsCompiler::PartsCompiler(std::unique_ptr<Compiler> inner, Compiler& parts, Get get, FileDigests& digests)
    : inner_(std::move(inner)), parts_(parts), get_(std::move(get)), refusals_(digests) {}

Result<CompilerIdentity> PartsCompiler::identity() {
  Result<CompilerIdentity> linker = inner_->identity();
  if (!linker) return linker;
  const Result<CompilerIdentity> compiler = parts_.identity();
  if (!compiler) return linker;
  CompilerIdentity both = *linker;
  both.name += "+" + compiler->name;
  both.version += " with " + compiler->name + " " + compiler->version;
  Writer out;
  out.text("kiln parts 1").digest(linker->digest).digest(compiler->digest);
  both.digest = sha256(out.bytes());
  both.add_environment(compiler->environment);
  return both;
}

bool PartsCompiler::closed(const Recipe& recipe) const {
  const auto parts = decode_link_parts(recipe.unit);
  if (!parts) return false;
  bool has_units = false;
  for (const LinkPartView& part : *parts) {
    if (!part.unit) continue;
    has_units = true;
    // The environment of both compilers is more than that of one, which errs to the safe side.
    const Recipe alone{*part.unit, lto_target(recipe.target), recipe.compiler, recipe.working_directory};
    if (part.unit->kind() != parts_.kind() || !parts_.closed(alone)) return false;
  }
  // What the linker says of a link of bytes holds for this one too, once its units are bytes.
  if (!has_units) return inner_->closed(recipe);
  Recipe bare = recipe;
  bare.unit = Unit::link(recipe.unit.name(), {LinkPart::ltoir({}, {})}).options(recipe.unit.options());
  return inner_->closed(bare);
}

Status PartsCompiler::gather(const Recipe& recipe, const std::vector<LinkPartView>& parts, Gathered& all) {
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
      return failure(Code::InvalidArgument, whose + "a unit of kind " + unit.kind() + " cannot be a part");
    }
    auto identity = parts_.identity();
    if (!identity) return std::move(identity).error();
    Recipe own{unit, lto_target(recipe.target), std::move(*identity), recipe.working_directory};
    own.flow = recipe.flow;
    own.closed = parts_.closed(own);
    auto got = get_(own);
    if (!got) {
      if (got.error().code == Code::CompileFailed) {
        refusals_.remember(recipe,
                           [this, own = std::move(own)](const Recipe&) { return parts_.worth_another_try(own); });
      }
      return failure(got.error().code, whose + got.error().message, got.error().log);
    }
    Artifact& artifact = got->artifact;
    if (got->not_cacheable.empty() && artifact.closure == nullptr) got->not_cacheable = "nobody saw what it read";
    if (!got->not_cacheable.empty()) all.not_cacheable = whose + got->not_cacheable;
    if (artifact.closure != nullptr) add_closure(all.closure, *artifact.closure, first_root);
    first_root += unit.include_roots().size();
    all.entries.insert(all.entries.end(), artifact.entries.begin(), artifact.entries.end());
    all.parts.push_back(LinkPart::ltoir(unit.name(), std::move(artifact.bytes)));
  }
  return {};
}

Result<Compiled> PartsCompiler::link(const Recipe& recipe, Gathered& all) {
  auto identity = inner_->identity();
  if (!identity) return std::move(identity).error();
  Unit bytes = Unit::link(recipe.unit.name(), all.parts).options(recipe.unit.options());
  for (const std::string& name : recipe.unit.entries()) {
    std::set<std::string> symbols;
    for (const Entry& entry : all.entries) {
      if (entry.name == name) symbols.insert(entry.symbol);
    }
    if (symbols.size() > 1) {
      return failure(Code::CompileFailed,
                     "unit '" + recipe.unit.name() + "' has more than one kernel '" + name + "': " + *symbols.begin() +
                         " and " + *symbols.rbegin(),
                     "the parts of the unit have different symbols for one entry");
    }
    bytes = bytes.entry(symbols.empty() ? name : *symbols.begin());
  }
  Recipe linkable{std::move(bytes), recipe.target, std::move(*identity), recipe.working_directory};
  linkable.flow = recipe.flow;
  linkable.closed = inner_->closed(linkable);
  auto compiled = inner_->compile(linkable);
  if (!compiled) return compiled;
  std::vector<Entry>& entries = compiled->artifact.entries;
  for (std::size_t i = 0; i < entries.size() && i < recipe.unit.entries().size(); ++i) {
    entries[i].name = recipe.unit.entries()[i];
  }
  return compiled;
}

Result<Compiled> PartsCompiler::compile(const Recipe& recipe) {
  const auto parts = decode_link_parts(recipe.unit);
  if (!parts) return parts.error();
  if (recipe.unit.include_roots().size() >= Closure::kWorkingDirectory) {
    return failure(Code::InvalidArgument,
                   "unit '" + recipe.unit.name() + "' has more include roots than can be told apart");
  }
  if (Status supported = supports(recipe.target); !supported) return std::move(supported).error();
  Gathered all;
  if (Status got = gather(recipe, *parts, all); !got) return std::move(got).error();
  if (all.closure.located) {
    all.closure.working_directory = recipe.working_directory;
    for (const IncludeRoot& root : recipe.unit.include_roots()) all.closure.root_paths.push_back(root.path);
  }
  // Parts that have times in their closures have line information, and the linker looks at those files once more.
  if (all.closure.timed && all.not_cacheable.empty()) all.not_cacheable = "the times of files are in one of its parts";

  auto compiled = link(recipe, all);
  if (!compiled) {
    const bool lasting = compiled.error().code == Code::CompileFailed && all.not_cacheable.empty();
    if (lasting) refusals_.remember(recipe, std::move(all.closure));
    return compiled;
  }
  compiled->artifact.closure = std::make_shared<const Closure>(std::move(all.closure));
  if (compiled->not_cacheable.empty()) compiled->not_cacheable = std::move(all.not_cacheable);
  const auto now = identity();
  if (!now || now->digest != recipe.compiler.digest || now->environment != recipe.compiler.environment) {
    compiled->not_cacheable = "the linker, or the compiler of its parts, changed while it ran";
  }
  return compiled;
}

bool PartsCompiler::worth_another_try(const Recipe& recipe) {
  return !closed(recipe) && refusals_.worth_another_try(recipe);
}

}  // namespace kiln
