// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>
#include <vector>

#include <kiln/cccl.hpp>

#include "bindings.hpp"
#include "core/unit_access.hpp"
#include "core/unit_codec.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "session/config/source_unit.hpp"
#include "session_object.hpp"

namespace kiln::python {
namespace {

// Arguments that all kinds of units take in addition to their source.
struct UnitArguments {
  nb::handle entries;
  nb::handle options;
  nb::handle include_roots;
  nb::handle headers;
  std::string preamble;
  nb::handle served_by;
};

// A single string is one text, not a sequence of letters.
std::vector<std::string> texts_of(nb::handle texts) {
  if (nb::isinstance<nb::str>(texts)) return {nb::cast<std::string>(texts)};
  std::vector<std::string> out;
  for (nb::handle text : nb::iter(texts)) out.push_back(nb::cast<std::string>(text));
  return out;
}

// A single path is one root, not a sequence of letters.
bool is_path(nb::handle roots) { return nb::isinstance<nb::str>(roots) || nb::hasattr(roots, "__fspath__"); }

Unit with_root(const Unit& unit, nb::handle root) {
  if (!nb::isinstance<nb::tuple>(root)) return unit.with_include_root(path_of(root));
  const auto pair = nb::cast<nb::tuple>(root);
  if (pair.size() != 2) throw nb::value_error("an include root must be a path, or a path and its sentinel file");
  return unit.with_include_root(path_of(pair[0]), path_of(pair[1]));
}

Unit with(Unit unit, const UnitArguments& extras) {
  for (const std::string& entry : texts_of(extras.entries)) unit = unit.with_entry(entry);
  if (const auto options = texts_of(extras.options); !options.empty()) unit = unit.with_options(options);
  if (extras.include_roots.is_valid() && is_path(extras.include_roots)) {
    unit = unit.with_include_root(path_of(extras.include_roots));
  } else if (extras.include_roots.is_valid()) {
    for (nb::handle root : nb::iter(extras.include_roots)) unit = with_root(unit, root);
  }
  if (extras.headers.is_valid() && !extras.headers.is_none()) {
    for (auto [name, content] : nb::cast<nb::dict>(extras.headers)) {
      unit = unit.with_header(nb::cast<std::string>(name), nb::cast<std::string>(content));
    }
  }
  if (!extras.preamble.empty()) unit = unit.with_preamble(extras.preamble);
  if (extras.served_by.is_valid()) unit = unit.with_served_by(texts_of(extras.served_by));
  register_unit(unit);
  return unit;
}

LinkPart part_of(nb::handle part) {
  if (nb::isinstance<LinkPart>(part)) return nb::cast<LinkPart>(part);
  if (nb::isinstance<Unit>(part)) return LinkPart::unit(nb::cast<Unit>(part));
  throw nb::type_error("a part of a linked unit must be a Unit or a LinkPart");
}

Unit cccl_unit(const std::string& spec) {
  // A name has no braces; a spec is JSON.
  const bool is_text = spec.find('{') != std::string::npos;
  return unwrap(is_text ? cccl::Spec::parse(spec) : cccl::find_predefined(spec)).unit();
}

// Returns the unit of a file as `kiln compile` and a kiln.toml make it.
Unit unit_of_path(nb::handle path, std::string name, const std::optional<std::string>& kind) {
  SourceUnit source;
  source.file = path_of(path);
  source.name = std::move(name);
  if (kind && *kind != "cuda" && *kind != "opencl") {
    throw nb::value_error(("kind must be one of cuda, opencl, not '" + *kind + "'").c_str());
  }
  source.opencl = kind ? *kind == "opencl" : is_opencl_file(source.file);
  return unwrap(call_without_gil([&] { return read_unit(source); }));
}

// Reads what `__reduce__` wrote.
Unit unit_of_bytes(const nb::bytes& bytes, std::vector<std::string> served_by) {
  BinaryReader in(std::string_view(bytes.c_str(), bytes.size()));
  Unit unit = read_unit(in).with_served_by(std::move(served_by));
  if (!in.at_end()) throw nb::value_error("cannot unpickle a kiln.Unit: the bytes are invalid; pickle it again");
  register_unit(unit);
  return unit;
}

std::string described(const Unit& unit) {
  std::string text = "<kiln.Unit " + unit.kind() + " '" + unit.label() + "'";
  for (const std::string& entry : unit.entries()) text.append(&entry == &unit.entries().front() ? ": " : ", ") += entry;
  return text + ">";
}

Bytes copy_of(const nb::bytes& bytes) { return Bytes::copy_of({bytes.c_str(), bytes.size()}); }

// Keyword arguments that CUDA, OpenCL and command units share.
template <class Class, class Make>
void def_source_kind(Class& cls, const char* name, const char* doc, Make make) {
  cls.def_static(
      name,
      [make](std::string unit, std::string source, nb::handle entries, nb::handle options, nb::handle include_roots,
             nb::handle headers, std::string preamble, nb::handle served_by) {
        return with(make(std::move(unit), std::move(source)),
                    {entries, options, include_roots, headers, std::move(preamble), served_by});
      },
      nb::arg("name"), nb::arg("source"), nb::kw_only(), nb::arg("entries") = nb::make_tuple(),
      nb::arg("options") = nb::make_tuple(), nb::arg("include_roots") = nb::make_tuple(),
      nb::arg("headers") = nb::none(), nb::arg("preamble") = "", nb::arg("served_by") = nb::make_tuple(), doc);
}

void bind_link_part(nb::module_& module) {
  nb::class_<LinkPart>(module, "LinkPart", "One part of a linked unit: compiled bytes, or a unit.")
      .def_static(
          "ltoir", [](std::string name, const nb::bytes& bytes) { return LinkPart::ltoir(name, copy_of(bytes)); },
          nb::arg("name"), nb::arg("bytes"), "Creates a part from LTO-IR.")
      .def_static(
          "ptx", [](std::string name, const nb::bytes& bytes) { return LinkPart::ptx(name, copy_of(bytes)); },
          nb::arg("name"), nb::arg("bytes"), "Creates a part from PTX.")
      .def_static(
          "cubin", [](std::string name, const nb::bytes& bytes) { return LinkPart::cubin(name, copy_of(bytes)); },
          nb::arg("name"), nb::arg("bytes"), "Creates a part from a cubin.")
      .def_static("unit", &LinkPart::unit, nb::arg("unit"), "Creates a part from a unit, which is compiled first.")
      .def_prop_ro(
          "name", [](const LinkPart& part) { return part.name(); }, "Name of the part.")
      .def("__repr__", [](const LinkPart& part) { return "<kiln.LinkPart '" + part.name() + "'>"; });
}

}  // namespace

Units units_of(nb::handle units) {
  if (nb::isinstance<Unit>(units)) return {nb::cast<Unit>(units)};
  Units out;
  for (nb::handle unit : nb::iter(units)) {
    if (!nb::isinstance<Unit>(unit)) throw nb::type_error("expected a kiln.Unit or several of them");
    out.push_back(nb::cast<Unit>(unit));
  }
  return out;
}

std::string path_of(nb::handle path) {
  const nb::object plain = nb::steal(PyOS_FSPath(path.ptr()));
  if (!plain.is_valid()) throw nb::python_error();
  return nb::cast<std::string>(plain);
}

void bind_unit(nb::module_& module) {
  bind_link_part(module);
  nb::class_<Unit> unit(module, "Unit",
                        "One program for one compiler, with its options and the kernels to export. "
                        "Immutable.");
  def_source_kind(unit, "cuda",
                  "Creates a CUDA C++ unit for NVRTC. An entry is a name, or a name expression such as scale<float>.",
                  [](std::string name, std::string source) { return Unit::cuda(std::move(name), std::move(source)); });
  def_source_kind(
      unit, "opencl", "Creates an OpenCL C unit for the device's own compiler.",
      [](std::string name, std::string source) { return Unit::opencl(std::move(name), std::move(source)); });
  unit.def_static(
      "from_file",
      [](nb::handle path, nb::handle entries, nb::handle options, nb::handle include_roots, nb::handle headers,
         std::string preamble, nb::handle served_by, std::string name, const std::optional<std::string>& kind) {
        return with(unit_of_path(path, std::move(name), kind),
                    {entries, options, include_roots, headers, std::move(preamble), served_by});
      },
      nb::arg("path"), nb::kw_only(), nb::arg("entries") = nb::make_tuple(), nb::arg("options") = nb::make_tuple(),
      nb::arg("include_roots") = nb::make_tuple(), nb::arg("headers") = nb::none(), nb::arg("preamble") = "",
      nb::arg("served_by") = nb::make_tuple(), nb::arg("name") = "", nb::arg("kind") = nb::none(),
      "Reads a source file: OpenCL C if it ends in .cl, otherwise CUDA C++, unless `kind` says it. The name is the "
      "file's own, without folders. A CUDA source with a quoted #include gets its folder as the first include root. "
      "`kiln compile` and a kiln.toml make an equal unit of the file.");
  unit.def_static(
      "command",
      [](std::string name, std::string source, nb::handle arguments, nb::handle entries, nb::handle options,
         nb::handle include_roots, nb::handle served_by) {
        const auto line = arguments.is_none() ? nvcc_template() : texts_of(arguments);
        return with(Unit::command(std::move(name), std::move(source), line),
                    {entries, options, include_roots, nb::handle(), {}, served_by});
      },
      nb::arg("name"), nb::arg("source"), nb::arg("arguments") = nb::none(), nb::kw_only(),
      nb::arg("entries") = nb::make_tuple(), nb::arg("options") = nb::make_tuple(),
      nb::arg("include_roots") = nb::make_tuple(), nb::arg("served_by") = nb::make_tuple(),
      "Creates a unit for a compiler that is a program. `arguments` is its command line; default: nvcc.");
  unit.def_static(
      "link",
      [](std::string name, nb::handle parts, nb::handle entries, nb::handle options, nb::handle served_by) {
        std::vector<LinkPart> list;
        for (nb::handle part : nb::iter(parts)) list.push_back(part_of(part));
        return with(Unit::link(std::move(name), list), {entries, options, nb::handle(), nb::handle(), {}, served_by});
      },
      nb::arg("name"), nb::arg("parts"), nb::kw_only(), nb::arg("entries") = nb::make_tuple(),
      nb::arg("options") = nb::make_tuple(), nb::arg("served_by") = nb::make_tuple(),
      "Creates a unit that nvJitLink links from several compiled parts.");
  unit.def_static("cccl", &cccl_unit, nb::arg("spec"),
                  "Creates a unit for a CCCL algorithm: the name of a predefined spec, or the text of a spec.");
  unit.def_prop_ro(
          "kind", [](const Unit& self) { return self.kind(); }, "'cuda', 'opencl', 'command', 'link' or 'cccl'.")
      .def_prop_ro(
          "name", [](const Unit& self) { return self.name(); }, "Name of the unit.")
      .def_prop_ro("label", &Unit::label,
                   "Name for displays: the name, and the entry if the unit shares a preamble with others.")
      .def_prop_ro("source", &Unit::full_source, "The source, with the preamble.")
      .def_prop_ro(
          "entries", [](const Unit& self) { return self.entries(); }, "The kernels to export.")
      .def_prop_ro(
          "options", [](const Unit& self) { return self.options(); }, "Options for the compiler.")
      .def_prop_ro(
          "served_by", [](const Unit& self) { return self.served_by(); },
          "Namespaces that may serve it; empty means any.")
      .def_prop_ro(
          "key", [](const Unit& self) { return self.key().hex(); }, "Key of the unit, in hexadecimal.")
      .def("__repr__", &described)
      // For pickle and copy: a unit is passed to processes that are started by spawn.
      .def("__reduce__",
           [](const Unit& self) {
             BinaryWriter written;
             write_unit(written, self);
             const std::string& bytes = written.bytes();
             return nb::make_tuple(nb::module_::import_("kiln._kiln").attr("_read_unit"),
                                   nb::make_tuple(nb::bytes(bytes.data(), bytes.size()), self.served_by()));
           })
      .def(
          "__hash__",
          [](const Unit& self) { return static_cast<Py_hash_t>(std::hash<Digest>()(UnitAccess::identity(self)) >> 1); })
      .def(
          "__eq__",
          [](const Unit& self, nb::handle other) {
            return nb::isinstance<Unit>(other) && nb::cast<const Unit&>(other) == self;
          },
          nb::arg("other").none());
  module.def("_read_unit", &unit_of_bytes, nb::arg("bytes"), nb::arg("served_by"));
}

}  // namespace kiln::python
