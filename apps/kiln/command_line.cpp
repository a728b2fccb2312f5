// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/command_line.hpp"

#include <algorithm>

#include "apps/kiln/command_tree.hpp"
#include "apps/kiln/commands.hpp"
#include "apps/kiln/exit_code.hpp"
#include "session/config/settings.hpp"

namespace kiln::cli {
namespace {

CommandNode node_of(const CLI::App& app) {
  CommandNode node{app.get_name(), app.get_description(), app.get_footer(), {}, {}, {}};
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) {
      const std::string name = option->get_name(true);
      node.arguments.push_back({name, option->get_description(), option->get_required(), choices_of(name)});
      continue;
    }
    CommandNode::Option out;
    for (const std::string& name : option->get_snames()) out.names.push_back('-' + name);
    for (const std::string& name : option->get_lnames()) out.names.push_back("--" + name);
    out.help = option->get_description();
    out.takes_value = option->get_type_size_max() > 0 && option->get_expected_max() > 0;
    if (out.takes_value) out.value = option->get_type_name();
    out.choices = choices_of(out.names.back());
    node.options.push_back(std::move(out));
  }
  for (const CLI::App* command : app.get_subcommands({})) node.commands.push_back(node_of(*command));
  return node;
}

const CLI::App* find_command(const CLI::App& parent, const std::string& name) {
  for (const CLI::App* command : parent.get_subcommands({})) {
    if (command->get_name() == name) return command;
  }
  return nullptr;
}

std::vector<std::string_view> command_names(const CLI::App& parent) {
  std::vector<std::string_view> names;
  for (const CLI::App* command : parent.get_subcommands({})) names.emplace_back(command->get_name());
  return names;
}

std::string unknown_command(const CLI::App& parent, const std::string& name) {
  std::string text = "unknown command '" + name + "'";
  if (const std::string meant = suggest_name(name, command_names(parent)); !meant.empty()) {
    text += "; did you mean '" + meant + "'?";
  }
  return text;
}

// Returns the message for an option that the command does not have; empty if each unexpected argument is another one.
std::string unknown_option(const CLI::App& app, const CLI::App& command) {
  for (const std::string& argument : app.remaining(true)) {
    if (!argument.starts_with('-') || argument == "-") continue;
    const std::string name = argument.substr(0, argument.find('='));
    std::vector<std::string> known;
    for (const CLI::Option* option : command.get_options()) {
      for (const std::string& each : option->get_lnames()) known.push_back("--" + each);
    }
    // One letter is similar to every other one.
    const bool is_long = name.starts_with("--");
    const std::string meant = is_long ? suggest_name(name, {known.begin(), known.end()}) : std::string();
    return "unknown option '" + name + "'" + (meant.empty() ? "" : "; did you mean '" + meant + "'?");
  }
  return {};
}

ParsedCommand usage_error(const std::string& message, const std::string& command) {
  return {.text = "kiln: error: " + message + "\nTry '" + command + " --help'.", .exit_code = kUsage};
}

ParsedCommand help(const CLI::App& app, const std::vector<std::string>& path, int exit_code) {
  const CLI::App* command = &app;
  std::string prefix;
  for (const std::string& name : path) {
    prefix += (prefix.empty() ? "" : " ") + command->get_name();
    const CLI::App* next = find_command(*command, name);
    if (next == nullptr) return usage_error(unknown_command(*command, name), prefix);
    command = next;
  }
  return {.text = command->help(prefix), .exit_code = exit_code};
}

// The deepest command that the first words name, and the path to it.
struct MatchedCommand {
  const CLI::App* command;
  std::vector<std::string> path;
  std::string name = "kiln";  // for messages
};
MatchedCommand reach(const CLI::App& app, const std::vector<std::string>& words) {
  MatchedCommand reached{&app, {}};
  for (const std::string& word : words) {
    const CLI::App* next = find_command(*reached.command, word);
    if (next == nullptr) break;
    reached.command = next;
    reached.path.push_back(word);
    reached.name += ' ' + word;
  }
  return reached;
}

}  // namespace

ParsedCommand parse_command_line(std::vector<std::string> arguments) {
  CommandTree tree;
  CLI::App& app = tree.app();
  // Handled before CLI11 parses the line, because CLI11 would print the help of `help` itself.
  if (!arguments.empty() && arguments.front() == "help") {
    return help(app, {arguments.begin() + 1, arguments.end()}, kSuccess);
  }
  // Arguments after "--" are compiler options, or a program and its arguments.
  const auto marker = std::find(arguments.begin(), arguments.end(), "--");
  std::vector<std::string> behind(marker == arguments.end() ? marker : marker + 1, arguments.end());
  arguments.erase(marker, arguments.end());
  const auto [reached, path, name] = reach(app, arguments);
  const bool group = !reached->get_subcommands({}).empty();
  if (group && arguments.size() == path.size()) return help(app, path, kUsage);
  if (group && arguments[path.size()].front() != '-') {
    return usage_error(unknown_command(*reached, arguments[path.size()]), name);
  }

  try {
    std::reverse(arguments.begin(), arguments.end());  // CLI11 expects reverse order
    app.parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    return help(app, path, kSuccess);
  } catch (const CLI::ParseError& error) {
    // A misspelled option is also a missing required one.
    const std::string message = unknown_option(app, *reached);
    return usage_error(message.empty() ? error.what() : message, name);
  }
  ParsedCommand& parsed = tree.parsed();
  if (tree.wants_version()) parsed.command = version_command;
  if (parsed.command == nullptr) return help(app, {}, kUsage);
  const bool for_compiler = parsed.command == compile_command || parsed.command == explain_command;
  const bool for_program =
      parsed.command == calibrate_command || parsed.command == bundle_pull_command || parsed.command == run_command;
  if (for_program) {
    parsed.arguments.program = std::move(behind);
  } else if (!behind.empty() && !for_compiler) {
    return usage_error(
        "only compile and explain (compiler options), calibrate and run (a program) and bundle pull (options of "
        "skopeo) take arguments after '--'",
        name);
  } else {
    std::vector<std::string>& options = parsed.arguments.options;
    options.insert(options.end(), behind.begin(), behind.end());
  }
  parsed.arguments.command = name;
  if (parsed.command == completions_command || parsed.command == man_command) parsed.arguments.tree = node_of(app);
  return std::move(parsed);
}

}  // namespace kiln::cli
