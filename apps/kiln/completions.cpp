// Completions are made from the same tree as the help, so that they know every command and option there is.
#include <string>

#include "apps/kiln/commands.hpp"
#include "apps/kiln/exit_code.hpp"
#include "apps/kiln/render_json.hpp"

namespace kiln::cli {
namespace {

std::string joined(const std::vector<std::string>& words, const char* between = " ") {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

// As one word of a shell, the same in all three.
std::string quoted(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return '\'' + out + '\'';
}

struct Place {
  std::string path;  // kiln cache ls
  const CommandNode* node;
};

void collect_places(const CommandNode& node, const std::string& path, std::vector<Place>& out) {
  out.push_back({path, &node});
  for (const CommandNode& command : node.commands) collect_places(command, path + ' ' + command.name, out);
}

std::vector<Place> places_of(const CommandNode& tree) {
  std::vector<Place> places;
  collect_places(tree, "kiln", places);
  return places;
}

// `kiln help` takes the names of the commands.
std::vector<std::string> positional_words(const CommandNode& tree, const Place& place) {
  std::vector<std::string> words = place.node->choices;
  const CommandNode& parent = place.path == "kiln help" ? tree : *place.node;
  for (const CommandNode& command : parent.commands) words.push_back(command.name);
  return words;
}

std::string bash(const CommandNode& tree) {
  std::vector<std::string> paths;
  std::string cases;
  for (const Place& place : places_of(tree)) {
    std::vector<std::string> words = positional_words(tree, place);
    for (const auto& option : place.node->options) words.insert(words.end(), option.names.begin(), option.names.end());
    cases += "    " + quoted(place.path) + ") words=" + quoted(joined(words)) +
             "; files=" + (place.node->takes_files ? "1" : "") + " ;;\n";
    if (place.path != "kiln") paths.push_back(quoted(place.path));
  }
  return "# bash completion for kiln, made by 'kiln completions bash'\n"
         "_kiln() {\n"
         "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} path=kiln words files word\n"
         "  case $previous in\n"
         "    --backend) COMPREPLY=($(compgen -W 'cuda opencl' -- \"$current\")); return ;;\n"
         "    -o|--output|-I|--include) compopt -o filenames; COMPREPLY=($(compgen -f -- \"$current\")); return ;;\n"
         "  esac\n"
         "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
         "    case \"$path $word\" in\n"
         "      " +
         joined(paths, "|") +
         ") path=\"$path $word\" ;;\n"
         "    esac\n"
         "  done\n"
         "  case $path in\n" +
         cases +
         "  esac\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
         "  if [[ -n $files && $current != -* ]]; then\n"
         "    compopt -o filenames\n"
         "    COMPREPLY=($(compgen -f -- \"$current\"))\n"
         "  fi\n"
         "}\n"
         "complete -F _kiln kiln\n";
}

// In a zsh specification brackets and colons mean something.
std::string zsh_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_argument(const CommandNode::Option& option) {
  if (!option.takes_value) return {};
  return option.choices.empty() ? ":value:_files" : ":value:(" + joined(option.choices) + ")";
}

std::string zsh(const CommandNode& tree) {
  std::string cases;
  for (const Place& place : places_of(tree)) {
    cases += "    " + quoted(place.path) + ")\n      specs=(\n";
    for (const CommandNode::Option& option : place.node->options) {
      for (const std::string& name : option.names) {
        // The star: it may be given more than once.
        cases += "        " + quoted('*' + name + '[' + zsh_text(option.help) + ']' + zsh_argument(option)) + '\n';
      }
    }
    const std::vector<std::string> words = positional_words(tree, place);
    if (!words.empty()) cases += "        " + quoted("*:command:(" + joined(words) + ")") + '\n';
    if (place.node->takes_files) cases += "        '*:file:_files'\n";
    cases += "      ) ;;\n";
  }
  std::vector<std::string> paths;
  for (const Place& place : places_of(tree)) paths.push_back(quoted(place.path));
  return "#compdef kiln\n"
         "# zsh completion for kiln, made by 'kiln completions zsh'\n"
         "_kiln() {\n"
         "  local place=kiln word\n"
         "  local -a specs\n"
         "  for word in \"${(@)words[2,CURRENT-1]}\"; do\n"
         "    case \"$place $word\" in\n"
         "      (" +
         joined(paths, "|") +
         ") place=\"$place $word\" ;;\n"
         "    esac\n"
         "  done\n"
         "  case $place in\n" +
         cases +
         "  esac\n"
         "  _arguments -s : $specs\n"
         "}\n"
         "if [[ ${funcstack[1]} == _kiln ]]; then _kiln \"$@\"; else compdef _kiln kiln; fi\n";
}

// The condition under which fish is at this place: each word of the path was seen, and none that leads on from it.
std::string fish_condition(const CommandNode& tree, const Place& place) {
  if (place.path == "kiln") return "__fish_use_subcommand";
  std::string condition;
  for (std::size_t at = 4; at < place.path.size();) {
    const std::size_t end = std::min(place.path.find(' ', at + 1), place.path.size());
    condition += (condition.empty() ? "" : "; and ") + std::string("__fish_seen_subcommand_from") +
                 place.path.substr(at, end - at);
    at = end;
  }
  std::vector<std::string> further = positional_words(tree, place);
  if (!place.node->commands.empty()) condition += "; and not __fish_seen_subcommand_from " + joined(further);
  return condition;
}

std::string fish(const CommandNode& tree) {
  std::string out = "# fish completion for kiln, made by 'kiln completions fish'\ncomplete -c kiln -f\n";
  for (const Place& place : places_of(tree)) {
    const std::string start = "complete -c kiln -n " + quoted(fish_condition(tree, place));
    for (const CommandNode& command : place.node->commands) {
      out += start + " -a " + command.name + " -d " + quoted(command.help) + '\n';
    }
    if (place.node->commands.empty()) {
      const std::vector<std::string> words = positional_words(tree, place);
      if (!words.empty()) out += start + " -a " + quoted(joined(words)) + '\n';
    }
    if (place.node->takes_files) out += start + " -F\n";
    for (const CommandNode::Option& option : place.node->options) {
      out += start;
      for (const std::string& name : option.names) {
        out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      if (option.takes_value) out += option.choices.empty() ? " -r -F" : " -x -a " + quoted(joined(option.choices));
      out += " -d " + quoted(option.help) + '\n';
    }
  }
  return out;
}

}  // namespace

int completions_command(const Arguments& arguments, Console& console) {
  const CommandNode& tree = arguments.tree;
  const std::string script = arguments.shell == "bash" ? bash(tree) : arguments.shell == "zsh" ? zsh(tree) : fish(tree);
  console.print(arguments.json ? completions_json(arguments.shell, script) : script);
  return kDone;
}

}  // namespace kiln::cli
