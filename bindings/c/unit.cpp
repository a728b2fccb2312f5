// SPDX-License-Identifier: Apache-2.0
// Units.
#include <string>
#include <utility>
#include <vector>

#include <kiln/cccl.hpp>

#include "c/api_call.hpp"

namespace kiln::c {
namespace {

Status give_unit(Unit made, kiln_unit** unit) {
  *unit = new kiln_unit(std::move(made));
  return {};
}

Status check_source(const char* name, const char* source, kiln_unit** unit) {
  if (Status there = check_place(unit, "unit"); !there) return there;
  if (Status there = check_text(name, "name"); !there) return there;
  return check_text(source, "source");
}

Result<LinkPart> part_of(const kiln_link_part& given, const std::string& name) {
  if (given.unit != nullptr) {
    if (Status right = check(given.unit, name + ".unit"); !right) return std::move(right).error();
    return LinkPart::unit(given.unit->unit);
  }
  if (Status there = check_address(given.name, name + ".name"); !there) return std::move(there).error();
  if (Status there = check_address(given.data, name + ".data"); !there) return std::move(there).error();
  if (given.bytes == 0 || given.bytes > PTRDIFF_MAX) return invalid_argument(name + ".bytes is out of range");
  const Bytes bytes = Bytes::copy_of({static_cast<const char*>(given.data), given.bytes});
  switch (static_cast<int>(given.form)) {
    case KILN_FORM_CUBIN: return LinkPart::cubin(given.name, bytes);
    case KILN_FORM_PTX: return LinkPart::ptx(given.name, bytes);
    case KILN_FORM_LTOIR: return LinkPart::ltoir(given.name, bytes);
    default: return invalid_argument(name + ".form cannot be linked: use a cubin, PTX or LTO-IR");
  }
}

template <class Read>
kiln_code give_unit_of_file(const char* path, kiln_unit** unit, kiln_error** error, const Read& read) noexcept {
  return run_call(error, [&]() -> Status {
    if (Status there = check_place(unit, "unit"); !there) return there;
    if (Status there = check_text(path, "path"); !there) return there;
    kiln::Result<Unit> made = read(path);
    if (!made) return std::move(made).error();
    return give_unit(*std::move(made), unit);
  });
}

// Replaces a unit by the result of `more`.
template <class More>
kiln_code add_to(kiln_unit* unit, const char* text, const char* name, kiln_error** error, const More& more) noexcept {
  return run_call(error, [&]() -> Status {
    if (Status right = check(unit, "unit"); !right) return right;
    if (Status there = check_text(text, name); !there) return there;
    unit->unit = more(unit->unit);
    return {};
  });
}

}  // namespace
}  // namespace kiln::c

using kiln::Status;
using namespace kiln::c;

kiln_code kiln_unit_cuda(const char* name, const char* source, kiln_unit** unit, kiln_error** error) {
  return run_call(error, [&]() -> Status {
    if (Status right = check_source(name, source, unit); !right) return right;
    return give_unit(kiln::Unit::cuda(name, source), unit);
  });
}

kiln_code kiln_unit_opencl(const char* name, const char* source, kiln_unit** unit, kiln_error** error) {
  return run_call(error, [&]() -> Status {
    if (Status right = check_source(name, source, unit); !right) return right;
    return give_unit(kiln::Unit::opencl(name, source), unit);
  });
}

kiln_code kiln_unit_cuda_file(const char* path, kiln_unit** unit, kiln_error** error) {
  return give_unit_of_file(path, unit, error, &kiln::Unit::cuda_file);
}

kiln_code kiln_unit_opencl_file(const char* path, kiln_unit** unit, kiln_error** error) {
  return give_unit_of_file(path, unit, error, &kiln::Unit::opencl_file);
}

kiln_code kiln_unit_link(const char* name, const kiln_link_part* parts, size_t part_count, kiln_unit** unit,
                         kiln_error** error) {
  return run_call(error, [&]() -> Status {
    if (Status there = check_place(unit, "unit"); !there) return there;
    if (Status there = check_text(name, "name"); !there) return there;
    if (Status right = check_items(parts, part_count, "parts"); !right) return right;
    if (part_count == 0) return invalid_argument("there are no parts to link");
    std::vector<kiln::LinkPart> taken;
    for (std::size_t i = 0; i < part_count; ++i) {
      auto part = part_of(parts[i], "parts[" + std::to_string(i) + "]");
      if (!part) return std::move(part).error();
      taken.push_back(*std::move(part));
    }
    return give_unit(kiln::Unit::link(name, taken), unit);
  });
}

kiln_code kiln_unit_command(const char* name, const char* source, const char* const* arguments, size_t argument_count,
                            kiln_unit** unit, kiln_error** error) {
  return run_call(error, [&]() -> Status {
    if (Status right = check_source(name, source, unit); !right) return right;
    if (Status right = check_items(arguments, argument_count, "arguments"); !right) return right;
    std::vector<std::string> line;
    for (std::size_t i = 0; i < argument_count; ++i) {
      const std::string which = "arguments[" + std::to_string(i) + "]";
      if (Status there = check_address(arguments[i], which); !there) return there;
      line.emplace_back(arguments[i]);
    }
    return give_unit(kiln::Unit::command(name, source, line.empty() ? kiln::nvcc_template() : line), unit);
  });
}

kiln_code kiln_unit_cccl(const char* spec, kiln_unit** unit, kiln_error** error) {
  return run_call(error, [&]() -> Status {
    if (Status there = check_place(unit, "unit"); !there) return there;
    if (Status there = check_text(spec, "spec"); !there) return there;
    const bool json = std::strchr(spec, '{') != nullptr;
    const auto parsed = json ? kiln::cccl::Spec::parse(spec) : kiln::cccl::find_predefined(spec);
    if (!parsed) return parsed.error();
    if (Status right = parsed->validate(); !right) return right;
    return give_unit(parsed->unit(), unit);
  });
}

kiln_code kiln_unit_copy(const kiln_unit* from, kiln_unit** unit, kiln_error** error) {
  return run_call(error, [&]() -> Status {
    if (Status there = check_place(unit, "unit"); !there) return there;
    if (Status right = check(from, "from"); !right) return right;
    return give_unit(from->unit, unit);
  });
}

kiln_code kiln_unit_instance(const kiln_unit* from, const char* entry, const char* source, kiln_unit** unit,
                             kiln_error** error) {
  return run_call(error, [&]() -> Status {
    if (Status right = check_source(entry, source, unit); !right) return right;
    if (Status right = check(from, "from"); !right) return right;
    return give_unit(from->unit.instance(entry, source), unit);
  });
}

kiln_code kiln_unit_add_entry(kiln_unit* unit, const char* name, kiln_error** error) {
  return add_to(unit, name, "name", error, [&](const kiln::Unit& before) { return before.with_entry(name); });
}

kiln_code kiln_unit_add_option(kiln_unit* unit, const char* option, kiln_error** error) {
  return add_to(unit, option, "option", error, [&](const kiln::Unit& before) { return before.with_option(option); });
}

kiln_code kiln_unit_add_include_root(kiln_unit* unit, const char* path, const char* sentinel, kiln_error** error) {
  return add_to(unit, path, "path", error, [&](const kiln::Unit& before) {
    return before.with_include_root(path, is_plausible_pointer(sentinel) ? sentinel : "");
  });
}

kiln_code kiln_unit_add_header(kiln_unit* unit, const char* name, const char* content, kiln_error** error) {
  if (!is_plausible_pointer(content)) return run_call(error, [&] { return check_text(content, "content"); });
  return add_to(unit, name, "name", error, [&](const kiln::Unit& before) { return before.with_header(name, content); });
}

kiln_code kiln_unit_set_preamble(kiln_unit* unit, const char* text, kiln_error** error) {
  return add_to(unit, text, "text", error, [&](const kiln::Unit& before) { return before.with_preamble(text); });
}

kiln_code kiln_unit_add_served_by(kiln_unit* unit, const char* name_space, kiln_error** error) {
  return add_to(unit, name_space, "name_space", error, [&](const kiln::Unit& before) {
    std::vector<std::string> namespaces = before.served_by();
    namespaces.emplace_back(name_space);
    return before.with_served_by(std::move(namespaces));
  });
}

const char* kiln_unit_kind(const kiln_unit* unit) { return is(unit) ? unit->kind.c_str() : nullptr; }

const char* kiln_unit_name(const kiln_unit* unit) { return is(unit) ? unit->name.c_str() : nullptr; }

kiln_code kiln_unit_key(const kiln_unit* unit, char hex[65], kiln_error** error) {
  return run_call(error, [&]() -> Status {
    if (Status right = check(unit, "unit"); !right) return right;
    if (Status there = check_address(hex, "hex"); !there) return there;
    std::memcpy(hex, unit->unit.key().hex().c_str(), 65);
    return {};
  });
}

void kiln_unit_free(kiln_unit* unit) { destroy(unit); }
