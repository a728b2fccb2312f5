// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/bytes.hpp>
#include <kiln/export.hpp>
#include <kiln/key.hpp>
#include <kiln/result.hpp>
#include <kiln/target.hpp>

namespace kiln {

/// A header that the compiler reads from memory, under the name that sources include it by.
struct Header {
  std::string name;
  std::string content;
};

/// A directory that the compiler searches for headers.
struct IncludeRoot {
  std::string path;
  /// Empty, or the path of one sentinel file that represents everything under `path`: a read-only image, a wheel, a
  /// module tree. kiln then checks that file instead of each header.
  std::string sentinel;
};

namespace detail {
struct UnitAccess;
}
class LinkPart;

/// One program for one compiler, with its options and the kernels to export. A unit is immutable and cheap to copy;
/// each `with_` function returns a new unit. Thread-safe.
class KILN_API Unit {
 public:
  /// Creates a CUDA C++ unit for NVRTC. `name` is the program name in compiler messages, `__FILE__` and internal
  /// symbols.
  [[nodiscard]] static Unit cuda(std::string name, std::string source);
  /// Creates an OpenCL C unit for the device's own compiler.
  [[nodiscard]] static Unit opencl(std::string name, std::string source);
  /// Reads a source file. The name of the unit is the file's base name. If a CUDA source has a quoted `#include`, the
  /// file's directory is the first include root. `kiln compile PATH` and a `kiln.toml` with the file make the same
  /// unit, so that its entries in caches and bundles are shared. Returns Code::Io if the file cannot be read.
  static Result<Unit> cuda_file(const std::string& path);
  static Result<Unit> opencl_file(const std::string& path);
  /// Creates a unit that nvJitLink links from several compiled parts. Options are linker options (`-O3`,
  /// `-maxrregcount=32`). An entry is the symbol of a kernel, or an entry of a part that is a unit, by its name in that
  /// unit. The include roots are those of its parts, in part order. A linked unit accepts no other include roots, no
  /// headers and no preamble.
  [[nodiscard]] static Unit link(std::string name, const std::vector<LinkPart>& parts);
  /// Creates a unit for a compiler that is a program, such as nvcc. `arguments` is its command line, starting with the
  /// program, with the placeholders {source}, {output}, {depfile}, {includes}, {form} and {arch}. No shell interprets
  /// it. The arguments become the first options of the unit; later options follow them. See
  /// docs/how-to/link-and-nvcc.md for the rules.
  [[nodiscard]] static Unit command(std::string name, std::string source, const std::vector<std::string>& arguments);
  /// Creates a unit of any other kind. `canonical` contains everything that determines the result, in a form that the
  /// compiler of that kind reads.
  [[nodiscard]] static Unit of_kind(std::string kind, std::string name, std::string canonical);

  /// Adds a kernel to export: a name, or for CUDA any name expression such as `scale<float, 4>`.
  [[nodiscard]] Unit with_entry(std::string name) const;
  /// Adds a compiler option.
  [[nodiscard]] Unit with_option(std::string text) const;
  [[nodiscard]] Unit with_options(const std::vector<std::string>& texts) const;
  /// Adds a directory to search for headers; see IncludeRoot.
  [[nodiscard]] Unit with_include_root(std::string path, std::string sentinel = {}) const;
  /// Adds a header from memory; see Header.
  [[nodiscard]] Unit with_header(std::string name, std::string content) const;
  /// Sets the text that precedes the source. All units derived from this one share it, and it is hashed once.
  [[nodiscard]] Unit with_preamble(std::string text) const;
  /// Returns this unit with another source after the same preamble: one instantiation of a family of kernels.
  [[nodiscard]] Unit instance(std::string entry, std::string source) const;

  /// Restricts the namespaces ("acme/vision", "acme/*") that can serve this unit from bundles and remote stores, in
  /// addition to the setting `trust.namespaces`. An empty list restricts nothing; an invalid namespace or pattern
  /// matches nothing. It is not part of any key, because the compiled code does not depend on it. See
  /// docs/how-to/sign-and-trust.md.
  [[nodiscard]] Unit with_served_by(std::vector<std::string> namespaces) const;

  const std::string& kind() const noexcept;
  const std::string& name() const noexcept;
  const std::string& source() const noexcept;
  const std::string& preamble() const noexcept;
  const std::vector<std::string>& options() const noexcept;
  const std::vector<IncludeRoot>& include_roots() const noexcept;
  const std::vector<Header>& headers() const noexcept;
  const std::vector<std::string>& entries() const noexcept;
  const std::vector<std::string>& served_by() const noexcept;

  /// Returns the display name for users and events: the name, followed by the entry if the unit shares a preamble with
  /// other units.
  std::string label() const;
  /// Returns the preamble and the source, as passed to the compiler.
  std::string full_source() const;
  /// Returns a key over all of the above. Of the include roots it covers only their number and order, not their paths.
  /// Computed once.
  UnitKey key() const;
  /// Returns true if the units have equal keys, include roots and `served_by`: a session compiles and loads one of them
  /// only. Hashes both units once.
  friend KILN_API bool operator==(const Unit& a, const Unit& b);
  friend bool operator!=(const Unit& a, const Unit& b) { return !(a == b); }

 private:
  friend struct detail::UnitAccess;
  struct State;
  explicit Unit(std::shared_ptr<const State> state);
  std::shared_ptr<const State> state_;
};

/// One part of a linked unit: compiled bytes, or a unit that is compiled first.
class KILN_API LinkPart {
 public:
  /// `name` is the part's name in linker messages. LTO-IR must come from the linker's CUDA version or an older one, and
  /// must be built for the target's architecture or an older one.
  [[nodiscard]] static LinkPart ltoir(std::string name, Bytes bytes);
  /// PTX and cubins that call into other parts must have been compiled with `-rdc=true`.
  [[nodiscard]] static LinkPart ptx(std::string name, Bytes bytes);
  [[nodiscard]] static LinkPart cubin(std::string name, Bytes bytes);
  /// Creates a part from a CUDA unit. kiln compiles it to LTO-IR for the link's architecture and caches it separately,
  /// so that several links that share the unit compile it once.
  [[nodiscard]] static LinkPart unit(Unit unit);

  /// Returns the format of the bytes or, for a unit, the format that it is compiled to.
  Form form() const noexcept { return form_; }
  const std::string& name() const noexcept { return unit_ ? unit_->name() : name_; }
  const Bytes& bytes() const noexcept { return bytes_; }
  /// Returns the unit, or null if the part consists of bytes.
  const Unit* as_unit() const noexcept { return unit_ ? &*unit_ : nullptr; }

 private:
  LinkPart(Form form, std::string name, Bytes bytes, std::optional<Unit> unit);
  Form form_;
  std::string name_;
  Bytes bytes_;
  std::optional<Unit> unit_;
};

/// Returns the nvcc command line for `Unit::command`.
KILN_API std::vector<std::string> nvcc_template();

}  // namespace kiln
