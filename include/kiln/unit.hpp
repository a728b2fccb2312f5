#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/bytes.hpp>
#include <kiln/export.hpp>
#include <kiln/key.hpp>
#include <kiln/target.hpp>

namespace kiln {

/// A header that is handed to the compiler from memory under the name by which sources include it.
struct Header {
  std::string name;
  std::string content;
};

/// A folder that the compiler searches for headers.
struct IncludeRoot {
  std::string path;
  /// Empty, or the path of one file whose content stands for everything under `path`: a read-only image, a wheel,
  /// a module tree. kiln then checks that file instead of each header.
  std::string seal;
};

class LinkPart;

/// What an author wrote: one program for one compiler, with its options and the kernels wanted from it.
/// A value: cheap to copy, immutable once made (each setter of the builder returns a new Unit), any thread.
class KILN_API Unit {
 public:
  /// CUDA C++ for NVRTC. `name` is what the compiler calls the program in messages, `__FILE__` and internal symbols.
  static Unit cuda(std::string name, std::string source);
  /// OpenCL C for the device's own compiler.
  static Unit opencl(std::string name, std::string source);
  /// Compiled code of several parts, linked into one by nvJitLink. Options are the linker's (`-O3`,
  /// `-maxrregcount=32`). An entry is a kernel's symbol, or an entry of a part that is a unit, by the name that it has
  /// there. The include roots are those of its parts, one part after the other; it takes no others, no headers and no
  /// preamble.
  static Unit link(std::string name, const std::vector<LinkPart>& parts);
  /// A source for a compiler that is a program, such as nvcc. `arguments` is its command line, the program first, with
  /// {source}, {output}, {depfile}, {includes}, {form} and {arch} where these go; no shell reads it. It becomes the
  /// unit's options, so that further ones follow it. docs/command-compiler.md has the rules.
  static Unit command(std::string name, std::string source, const std::vector<std::string>& arguments);
  /// Any other kind: `canonical` is everything that decides the result, in a form that the kind's compiler reads.
  static Unit of_kind(std::string kind, std::string name, std::string canonical);

  /// One kernel to find in the result: a name, or for CUDA any name expression such as `scale<float, 4>`.
  Unit entry(std::string name) const;
  Unit option(std::string text) const;
  Unit options(const std::vector<std::string>& texts) const;
  Unit include_root(std::string path, std::string seal = {}) const;
  Unit header(std::string name, std::string content) const;
  /// Text that goes before the source. It is shared by every unit made from this one, and hashed once for all.
  Unit preamble(std::string text) const;
  /// This unit with other source text behind the same preamble: one instantiation of a family of kernels.
  Unit instance(std::string entry, std::string source) const;

  const std::string& kind() const noexcept;
  const std::string& name() const noexcept;
  const std::string& source() const noexcept;
  const std::string& preamble() const noexcept;
  const std::vector<std::string>& options() const noexcept;
  const std::vector<IncludeRoot>& include_roots() const noexcept;
  const std::vector<Header>& headers() const noexcept;
  const std::vector<std::string>& entries() const noexcept;

  /// What people and events call it: the name and, of one that has a preamble in common with others, its entry.
  std::string label() const;
  /// Preamble and source, as the compiler gets them.
  std::string whole_source() const;
  /// Covers all of the above except where include roots lie: only their number and order count. Computed once.
  UnitKey key() const;
  /// The key and where the include roots lie: the same for units that this process would compile alike. Computed once;
  /// for tables in memory, never stored.
  const Digest& identity() const;
  /// The identity where it has been computed, else null: for callers who have no time to hash a source.
  const Digest* known_identity() const noexcept;
  /// The same for copies of one unit, and for no other unit while one of them lives.
  const void* address() const noexcept { return state_.get(); }

 private:
  struct State;
  explicit Unit(std::shared_ptr<const State> state);
  std::shared_ptr<const State> state_;
};

/// One part of a linked unit: compiled code by its bytes, or a unit that is compiled before. A value.
class KILN_API LinkPart {
 public:
  /// `name` is what the linker calls the part in messages. LTO-IR must be of the linker's CUDA version or older, and
  /// for the target's architecture or an older one.
  static LinkPart ltoir(std::string name, Bytes bytes);
  /// PTX and cubins that call into other parts must have been compiled with `-rdc=true`.
  static LinkPart ptx(std::string name, Bytes bytes);
  static LinkPart cubin(std::string name, Bytes bytes);
  /// A CUDA unit. It is compiled to LTO-IR for the link's architecture and kept on its own, so that links which have it
  /// in common compile it once.
  static LinkPart unit(Unit unit);

  /// What the bytes are; of a unit, what it is compiled to.
  Form form() const noexcept { return form_; }
  const std::string& name() const noexcept { return unit_ ? unit_->name() : name_; }
  const Bytes& bytes() const noexcept { return bytes_; }
  /// The unit, or null where the part is bytes.
  const Unit* as_unit() const noexcept { return unit_ ? &*unit_ : nullptr; }

 private:
  LinkPart(Form form, std::string name, Bytes bytes, std::optional<Unit> unit);
  Form form_;
  std::string name_;
  Bytes bytes_;
  std::optional<Unit> unit_;
};

/// The command line of nvcc for `Unit::command`.
KILN_API std::vector<std::string> nvcc_template();

}  // namespace kiln
