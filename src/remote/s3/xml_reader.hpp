// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace kiln {

/// Receives the elements of an XML text. A function returns false to stop.
class XmlHandler {
 public:
  virtual ~XmlHandler() = default;
  /// `depth` is the number of enclosing elements.
  virtual bool open(std::string_view name, std::size_t depth) = 0;
  /// Called at the end of each element. `text` is that between its last two tags, with references replaced.
  virtual bool close(std::string_view name, std::size_t depth, std::string_view text) = 0;
};

/// Parses the XML of S3 responses: one element, with at most a declaration before it; elements nested at most
/// kMaxXmlDepth deep; the five named and ASCII character references. Attributes are skipped. Comments, document types,
/// CDATA and processing instructions are rejected. Uses no memory for each element; the caller limits the size of the
/// text. Returns false if the text is invalid or the handler stopped.
bool parse_xml(std::string_view text, XmlHandler& handler);

constexpr std::size_t kMaxXmlDepth = 16;

}  // namespace kiln
