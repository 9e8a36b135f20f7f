#pragma once
// The command line (contract, section 6): one subcommand per file, and what they share.
#include <functional>
#include <iosfwd>
#include <string>

#include "holdfast/core/error.h"

namespace CLI {
class App;
}

namespace holdfast::cli {

/// Exit codes of the contract.
inline constexpr int kOk = 0, kFailed = 1, kBadInput = 2, kUnknown = 3, kCancelled = 4, kNotSettled = 5;

/// The world around a command.
struct Io {
  std::ostream& out;
  std::ostream& err;
  std::function<const char*(const std::string&)> env;
};

/// Runs one command and returns its exit code. Messages for people go to `io.err`.
[[nodiscard]] int run_command_line(int argc, const char* const* argv, Io io);

enum class Format { table, json, ids };

/// Options that several commands have.
struct Common {
  Format format = Format::table;
  std::string url;  // --url
};

/// What a parsed command line will do. Each add_* function registers its subcommand and sets `action` when it
/// is chosen.
struct Commands {
  Io io;
  std::function<int()> action;
};

void add_serve(CLI::App& app, Commands& commands);
void add_check(CLI::App& app, Commands& commands);
void add_submit(CLI::App& app, Commands& commands);
void add_get(CLI::App& app, Commands& commands);
void add_watch(CLI::App& app, Commands& commands);
void add_list(CLI::App& app, Commands& commands);
void add_cancel(CLI::App& app, Commands& commands);
void add_unknowns(CLI::App& app, Commands& commands);
void add_resolve(CLI::App& app, Commands& commands);
void add_breakers(CLI::App& app, Commands& commands);
void add_tools(CLI::App& app, Commands& commands);
void add_token(CLI::App& app, Commands& commands);
void add_backup(CLI::App& app, Commands& commands);
void add_version(CLI::App& app, Commands& commands);

/// Adds `-o table|json|ids` and `--url`.
void add_common(CLI::App& command, Common& common);

}  // namespace holdfast::cli
