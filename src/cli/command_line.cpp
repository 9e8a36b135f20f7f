#include "cli/command_line.h"

#include <CLI/CLI.hpp>
#include <ostream>

namespace holdfast::cli {

void add_common(CLI::App& command, Common& common) {
  const std::map<std::string, Format> formats{
      {"table", Format::table}, {"json", Format::json}, {"ids", Format::ids}};
  // By name only: a transformer of CLI11 would take an enumerator's number too.
  command
      .add_option_function<std::string>(
          "-o,--output", [&common, formats](const std::string& name) { common.format = formats.at(name); },
          "table, json or ids")
      ->check(CLI::IsMember({"table", "json", "ids"}).description(""))
      ->option_text("table|json|ids");
  command.add_option("--url", common.url, "address of the server, e.g. http://127.0.0.1:4653 or unix:/run/holdfast/client.sock")
      ->option_text("URL");
}

int run_command_line(int argc, const char* const* argv, Io io) {
  CLI::App app{"Holdfast: durable runs of tool calls, where no write happens twice"};
  app.name("holdfast");
  app.require_subcommand(1);
  Commands commands{std::move(io), {}};
  add_serve(app, commands);
  add_check(app, commands);
  add_submit(app, commands);
  add_get(app, commands);
  add_watch(app, commands);
  add_list(app, commands);
  add_cancel(app, commands);
  add_unknowns(app, commands);
  add_resolve(app, commands);
  add_breakers(app, commands);
  add_tools(app, commands);
  add_token(app, commands);
  add_backup(app, commands);
  add_version(app, commands);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // CLI11 has an exit code of its own for every kind of mistake; here a mistake is 2, and help is no
    // mistake.
    return app.exit(error, commands.io.out, commands.io.err) == 0 ? kOk : kBadInput;
  }
  return commands.action ? commands.action() : kBadInput;
}

}  // namespace holdfast::cli
