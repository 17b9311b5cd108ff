// SPDX-License-Identifier: Apache-2.0
#include "cli/application.h"

#include <loipe/loipe.h>

#include <algorithm>
#include <new>

#include "base/printable.h"
#include "base/text.h"
#include "cli/command.h"

namespace loipe::cli {

namespace {

constexpr int kInternalExit = static_cast<int>(ErrorCode::internal);
constexpr int kMemoryExit = static_cast<int>(ErrorCode::resource_limit);

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  for (const Command* command : all_commands()) names.emplace_back(command->name);
  return names;
}

/// CLI11 would not name the nearest command.
void check_command(const std::vector<std::string>& arguments) {
  const std::vector<std::string> names = command_names();
  const auto command =
      std::ranges::find_if(arguments, [](const std::string& argument) { return !argument.starts_with("-"); });
  if (command == arguments.end())
    throw UserError("a command is missing: expected one of " + join(names, ", ") + "; see loipe --help");
  if (std::ranges::find(names, *command) != names.end()) return;
  throw UserError("unknown command '" + shortened(*command) + "'" + did_you_mean(*command, names) +
                  "; expected one of " + join(names, ", "));
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

/// What the parser could not place.
void check_extras(const CLI::App& app) {
  const std::vector<std::string> extras = app.remaining();
  if (extras.empty()) return;
  const auto option = std::ranges::find_if(extras, [](const std::string& e) { return e.starts_with("-"); });
  if (option == extras.end())
    throw UserError("unexpected argument '" + shortened(extras.front()) + "' of command '" + app.get_name() +
                    "'");
  const std::string name = option->substr(0, option->find('='));
  throw UserError("unknown option '" + shortened(name) + "' of command '" + app.get_name() + "'" +
                  did_you_mean(name, option_names(app)) + "; see loipe " + app.get_name() + " --help");
}

/// CLI11's own messages may have several lines; ours are one sentence.
std::string one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

int dispatch(const std::vector<std::string>& arguments, Terminal& terminal) {
  CLI::App app("Loipe, a Jacobian compiler", "loipe");
  app.set_version_flag("--version", std::string("loipe ") + version(), "print the version and exit");
  app.footer(
      "Examples:\n  loipe tasks\n  loipe count Encoder\n  loipe bench transformer\n"
      "Every command has its own --help.");
  bool quiet = false;
  app.add_flag("--quiet", quiet, "no progress on standard error");
  std::vector<std::pair<CLI::App*, Action>> actions;
  app.require_subcommand(0, 1);  // "attention" after "bench" is what to time, no second command
  for (const Command* command : all_commands()) {
    CLI::App* sub = app.add_subcommand(command->name, command->summary);
    sub->footer(std::string("Examples:\n") + command->examples);
    sub->allow_extras();
    sub->add_flag("--quiet", quiet, "no progress on standard error");
    actions.emplace_back(sub, command->declare(*sub, terminal));
  }
  try {
    if (std::ranges::none_of(
            arguments, [](const std::string& a) { return a == "--help" || a == "-h" || a == "--version"; }))
      check_command(arguments);
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForVersion& request) {
    print(std::string(request.what()) + "\n");
    return 0;
  } catch (const CLI::CallForHelp&) {
    print(app.help());
    return 0;
  } catch (const CLI::ParseError& error) {
    throw UserError(one_line(error.what()));
  }
  terminal.set_quiet(quiet);
  for (const auto& [sub, action] : actions) {
    if (!sub->parsed()) continue;
    check_extras(*sub);
    return action();
  }
  check_command({});
  return kInternalExit;
}

}  // namespace

int run_application(const std::vector<std::string>& arguments) {
  Terminal terminal;
  try {
    return dispatch(arguments, terminal);
  } catch (const Error& error) {
    // Names in files may hold anything; the lines of an internal error are our own.
    const bool is_internal = error.code() == ErrorCode::internal;
    terminal.error(is_internal ? error.what() : printable(error.what(), 4 * kLongestMessage));
    return static_cast<int>(error.code());
  } catch (const std::bad_alloc&) {
    terminal.error("out of memory: the request needs more than this machine can give");
    return kMemoryExit;
  } catch (const std::exception& error) {
    terminal.error(std::string("internal error: ") + error.what() + " (please report this)");
    return kInternalExit;
  }
}

}  // namespace loipe::cli
