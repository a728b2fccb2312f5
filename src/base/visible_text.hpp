// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace kiln {

/// Escapes untrusted text so that a terminal cannot interpret it. Control characters (C0, DEL, C1), line and paragraph
/// separators, and the marks, overrides and isolates that change the text direction become `\u001b`. Bytes that are not
/// UTF-8 become `\x9b`. Characters in `kept` stay. Escaping is idempotent, and JSON stays JSON with the same meaning.
std::string visible_text(std::string_view text, std::string_view kept = {});

/// Returns a URL with `***` instead of its user and password, for messages: everything before the last `@`, because a
/// password can contain any character. A path is unchanged.
std::string visible_url(std::string_view url);

/// Prints `kiln: warning: <message>` as one line on standard error, for programs without an event callback.
void print_warning(std::string_view message);

}  // namespace kiln
